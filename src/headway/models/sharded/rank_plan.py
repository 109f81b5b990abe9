"""RankPlan: what one rank loads of a native model."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import torch

from headway.distributed.process_groups import ProcessGroups
from headway.distributed.rank_place import RankPlace, stage_layers
from headway.errors import ConfigError
from headway.kernels.huge_pages import use_huge_pages
from headway.kernels.interface import Kernels
from headway.models.decoder_config import DecoderConfig
from headway.models.fill import Progress
from headway.models.native import NativePlan
from headway.models.prepared.filling import fill_from_card
from headway.models.sharded.divided_config import check_divisible, divided_config
from headway.models.sharded.rank_decoder import RankDecoder
from headway.models.sharded.sliced_weights import rank_weights

PARTITION: Final = "VLLM_PP_LAYER_PARTITION"


@dataclass(frozen=True, slots=True)
class RankPlan:
    """`own` has the rank's sizes, weights and slices; `whole` is the configuration of the model; `summed` see RankWeights."""

    own: NativePlan
    whole: DecoderConfig
    place: RankPlace
    summed: frozenset[str]

    def load(self, dtype: torch.dtype, kernels: Kernels, progress: Progress, groups: ProcessGroups) -> RankDecoder:
        """Reads the rank's part of the files."""
        model = RankDecoder(self.own.config, self.whole, dtype, kernels, groups)
        fill_from_card(
            model, self.own.card, self.own.weights, kernels, progress, head=self.own.head, rounding=self.own.rounding
        )
        model.sum_up(self.summed)
        use_huge_pages()
        return model


def plan_rank(plan: NativePlan, place: RankPlace, environment: Mapping[str, str] = os.environ) -> RankPlan:
    """Raises ConfigError and ArtifactError (`cannot_divide`), NotBuiltError."""
    config = plan.config
    check_divisible(config, place.tensor, plan.card.reference)
    layers = _stages(config, place, environment)[place.stage]
    mine = rank_weights(plan.weights, plan.card.tensors, config, place, layers)
    card = replace(plan.card, tensors=mine.tensors, parameters=sum(each.elements for each in mine.tensors.values()))
    own = replace(
        plan, card=card, config=divided_config(config, place, layers), weights=mine.weights, head=plan.head and place.is_last,
    )  # fmt: skip
    return RankPlan(own, config, place, mine.summed)


def _stages(config: DecoderConfig, place: RankPlace, environment: Mapping[str, str]) -> tuple[range, ...]:
    text = environment.get(PARTITION, "")
    try:
        partition = tuple(int(part) for part in text.split(",")) if text else None
        return stage_layers(config.num_layers, place.pipeline, partition)
    except ValueError as error:
        source = f"{PARTITION}={text}" if text else f"pipeline parallel size {place.pipeline}"
        raise ConfigError(
            f"{source}: {error}", reason="cannot_divide", param="pipeline_parallel_size",
            fix=f"Use at most {config.num_layers} stages" + (f", or correct {PARTITION}." if text else "."),
        ) from None  # fmt: skip
