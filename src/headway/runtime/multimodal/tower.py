"""A tower: one model class of transformers with the tensors of a checkpoint that belong to it. No code of packages is run."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import torch

from headway.artifacts.card import ModelCard
from headway.errors import PackageError
from headway.models.checkpoint_tensors import refuse_missing, refuse_shapes, some
from headway.models.encoders.transformers_plan import model_with_weights
from headway.models.fallback.transformers_class import transformers_config
from headway.quantization.logical_card import logical_card
from headway.quantization.supported import check_types
from headway.quantization.weight_reader import WeightReader

Progress = Callable[[int, int], None]
_COMPUTED: Final = re.compile(r"(^|\.)(position_ids|num_batches_tracked|relative_position_index)$")  # stored by some versions, and not needed


@dataclass(frozen=True, slots=True)
class TowerPlan:
    """`weights`: the name that the class gives a tensor -> its name in the checkpoint."""

    card: ModelCard
    model_class: Any
    config: Any
    weights: Mapping[str, str]

    @property
    def parameters(self) -> int:
        return sum(self.card.tensors[name].elements for name in self.weights.values())

    def load(self, dtype: torch.dtype, progress: Progress) -> Any:
        """The module, in evaluation mode. Raises ArtifactError (`weights_unreadable`)."""
        with WeightReader(self.card) as reader:
            tensors = {name: reader.tensor(source, dtype) for name, source in self.weights.items()}
        model, _ = model_with_weights(self.card, self.model_class, self.config, tensors, dtype, progress)
        return model


def plan_tower(card: ModelCard, find_class: Callable[[], Any], prefix: str = "", unused: re.Pattern[str] | None = None) -> TowerPlan:
    """Whether the tensors below `prefix` are those that the class has for the card's config, by headers alone. What matches
    `unused` may be missing, and may be left over.

    Raises ArtifactError: `invalid_model_config`, `missing_tensor`, `tensor_shape`, `unexpected_tensor`, those of `logical_card`.
    """
    card = logical_card(card)
    config = transformers_config(card)
    model_class = find_class()
    weights = {name.removeprefix(prefix): name for name in card.tensors if name.startswith(prefix) and not _COMPUTED.search(name)}
    nothing = torch.zeros((), dtype=torch.bfloat16)
    imagined = {name: nothing.expand(card.tensors[source].shape) for name, source in weights.items()}
    _, found = model_with_weights(card, model_class, config, imagined, torch.bfloat16, lambda done, total: None, device_map="meta")

    def optional(name: str) -> bool:
        return _COMPUTED.search(name) is not None or (unused is not None and unused.search(name) is not None)

    refuse_missing(card, sorted(prefix + name for name in found["missing_keys"] if not optional(name)))
    refuse_shapes(card, [(prefix + name, tuple(stored), tuple(wanted)) for name, stored, wanted in sorted(found["mismatched_keys"])])
    extra = sorted(prefix + name for name in found["unexpected_keys"] if not optional(name))
    if extra:
        raise PackageError(f"{card.path} has {len(extra)} tensors for which {model_class.__name__} has no place as its configuration describes"
                           f" it: {some(extra)}", reason="unexpected_tensor", param=extra[0], fix="Check that config.json belongs to these weights.")  # fmt: skip
    weights = {name: source for name, source in weights.items() if name not in found["unexpected_keys"]}
    check_types(card.tensors[source] for source in weights.values())
    return TowerPlan(card, model_class, config, weights)
