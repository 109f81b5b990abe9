"""What an engine holds in memory: weights and cache counted, the largest step reckoned."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from headway.artifacts.card import ModelCard
from headway.capacity.activations import HEADWAY, Step, activation_bytes
from headway.capacity.byte_text import byte_text
from headway.capacity.card_shape import card_shape
from headway.capacity.fit import CapacityReport
from headway.capacity.on_host import as_headway_keeps
from headway.engine.config import EngineConfig
from headway.engine.model_runner import ModelRunner
from headway.errors import CapacityError
from headway.models.held_bytes import held_bytes

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Bytes. `kv_cache` is reserved, and committed as it is written; `activations` is the most that one step takes, None for models
    whose configuration does not tell."""

    weights: int
    kv_cache: int
    activations: int | None


def memory_use(config: EngineConfig, card: ModelCard, runner: ModelRunner, capacity: CapacityReport) -> MemoryUse:
    """Of a loaded engine; logs it."""
    try:
        shape = as_headway_keeps(card_shape(card))
        step = Step(min(config.max_num_batched_tokens, capacity.tokens), min(config.max_num_seqs, capacity.num_blocks), capacity.max_model_len)
        activations = activation_bytes(shape, step, runner.model.dtype.itemsize, HEADWAY)
    except CapacityError:
        activations = None
    found = MemoryUse(held_bytes(runner.model), runner.kv.nbytes, activations)
    _log.info(
        "Memory: weights %s, KV cache %s (committed as it is written), one step up to %s",
        byte_text(found.weights), byte_text(found.kv_cache), "an unknown amount" if activations is None else byte_text(activations),
    )  # fmt: skip
    return found
