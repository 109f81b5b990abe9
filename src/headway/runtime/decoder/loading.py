"""A model card -> a trunk ready to read: its weights, and a cache of bounded size."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import torch

from headway.artifacts.card import ModelCard
from headway.capacity.byte_text import byte_text
from headway.capacity.kv_geometry import KvGeometry
from headway.errors import CapacityError
from headway.host.memory_budget import memory_budget
from headway.kernels.choice import exact_kernels
from headway.models.backbone import plan_backbone
from headway.models.causal_lm import CausalLM
from headway.models.load import load_planned
from headway.models.plan import plan_model
from headway.runtime.decoder.trunk import BLOCK_SIZE, DecoderTrunk
from headway.runtime.family import Dtype

DTYPES: Final[Mapping[Dtype, torch.dtype]] = {"float32": torch.float32, "bfloat16": torch.bfloat16, "int8": torch.bfloat16}

_UNSTATED_CONTEXT: Final = 2048
_CACHED_ROWS: Final = 4  # of the longest kind: beyond that a cache would only keep what nobody asks for again
_MOST_CACHE_BYTES: Final = 1 << 30
_CACHE_SHARE: Final = 0.125  # of the memory that is left: several models of one process have a cache each


def load_trunk(
    card: ModelCard, dtype: Dtype, *, share: bool, max_tokens: int | None = None,
    known_tokens: int | None = None, progress: Callable[[int, int], None] | None = None,
) -> DecoderTrunk:  # fmt: skip
    """A language model with its head. `max_tokens`: the longest row, None = what the card states; it is cut to what the cache
    can hold (`DecoderTrunk.max_tokens` says). The other arguments: see DecoderTrunk.

    Raises what `models.load` raises, and CapacityError (`no_memory_for_kv`) when not even one block fits.
    """
    longest = _longest(card, max_tokens)
    plan = plan_model(card, longest)
    model = load_planned(plan, DTYPES[dtype], progress=progress, kernels=exact_kernels(DTYPES[dtype]))
    return _trunk(model, card, longest, plan.parameters, share=share, has_head=True, known_tokens=known_tokens)


def load_backbone(
    card: ModelCard, dtype: Dtype, *, share: bool, max_tokens: int | None = None,
    prefix: str | None = None, progress: Callable[[int, int], None] | None = None,
) -> DecoderTrunk:  # fmt: skip
    """The same without a head, of a checkpoint with or without one: rows want `HiddenAt` only. `prefix`: what the names of
    its tensors begin with, see `models.backbone.plan_backbone`."""
    longest = _longest(card, max_tokens)
    plan = plan_backbone(card, longest, prefix)
    model = load_planned(plan, DTYPES[dtype], progress=progress, kernels=exact_kernels(DTYPES[dtype]))
    return _trunk(model, card, longest, plan.parameters, share=share, has_head=False)


def _longest(card: ModelCard, max_tokens: int | None) -> int:
    stated = card.context_length or _UNSTATED_CONTEXT
    return stated if max_tokens is None else min(stated, max_tokens)


def _trunk(
    model: CausalLM, card: ModelCard, longest: int, parameters: int, *, share: bool, has_head: bool, known_tokens: int | None = None
) -> DecoderTrunk:
    shape = model.config.kv_shape
    per_token = KvGeometry(shape.num_layers, shape.num_kv_heads, shape.head_dim).bytes_per_token(model.dtype.itemsize)
    budget = min(_MOST_CACHE_BYTES, int(memory_budget().available * _CACHE_SHARE))
    fits = budget // per_token // BLOCK_SIZE * BLOCK_SIZE
    if fits == 0:
        raise CapacityError(
            f"no memory is left for keys and values of {card.reference}: a block takes {byte_text(BLOCK_SIZE * per_token)}, there are"
            f" {byte_text(budget)}", reason="no_memory_for_kv", fix="Serve a smaller model, or free memory.",
        )  # fmt: skip
    return DecoderTrunk(
        model, max_tokens=min(longest, fits), cache_tokens=min(fits, _CACHED_ROWS * longest), share=share, has_head=has_head,
        known_tokens=known_tokens, memory_bytes=parameters * model.dtype.itemsize,
    )  # fmt: skip
