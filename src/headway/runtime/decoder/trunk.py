"""DecoderTrunk: a language model that is read, not sampled: rows in, hidden states or label logits out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import torch

from headway.kernels.paged_kv import PagedKV
from headway.kvcache.manager import KVCacheManager
from headway.kvcache.runs import forward_batch
from headway.models.causal_lm import CausalLM
from headway.runtime.decoder.reading import store_reads, wanted_reads
from headway.runtime.decoder.walk import Piece, Walk
from headway.runtime.decoder.wanted import LabelLogits, Wanted, wanted_of
from headway.runtime.row import ItemFailure, Outcome, Row

Floats = npt.NDArray[np.float32]

BLOCK_SIZE: Final = 16


@dataclass(slots=True)
class TrunkCounts:
    """What the trunk did since it was made. `computed_tokens` went through the layers; `shared_tokens` did not, since their
    keys and values were there."""

    forwards: int = 0
    steps: int = 0
    computed_tokens: int = 0
    shared_tokens: int = 0


class DecoderTrunk:
    """A loaded model and the cache its rows run on. One thread at a time calls `read`.

    A row is causal: its token at position p sees positions 0 to p, and nothing of another row. (Layers that see in both
    directions are not possible here: the kernels of the paged cache know no other mask.)
    """

    def __init__(
        self, model: CausalLM, *, max_tokens: int, cache_tokens: int, share: bool, has_head: bool = True, known_tokens: int | None = None,
        memory_bytes: int = 0, step_tokens: int = 2048,
    ):  # fmt: skip
        """`max_tokens` is the longest row and `cache_tokens` what the cache holds in all, at least that. `share` says whether
        rows take over what others computed. `known_tokens`: logits from this one on pad the vocabulary and count for nothing.
        `memory_bytes` is what the weights occupy, `step_tokens` how many tokens go through the layers at once."""
        self.model = model
        self.max_tokens = max_tokens
        self.memory_bytes = memory_bytes
        self.counts = TrunkCounts()
        self._step_tokens = step_tokens
        self._has_head = has_head
        self._known_tokens = known_tokens
        num_blocks = 1 + -(-max(cache_tokens, max_tokens) // BLOCK_SIZE)  # the null block
        self._manager = KVCacheManager(num_blocks, BLOCK_SIZE, caching=share)
        self._kv = PagedKV(num_blocks, BLOCK_SIZE, model.config.kv_shape, model.dtype)

    @property
    def held_blocks(self) -> int:
        """Blocks that somebody references; 0 between two forward passes."""
        return self._manager.pool.num_blocks - 1 - self._manager.pool.num_free

    @property
    def cache_bytes(self) -> int:
        """Bytes reserved for keys and values; committed as they are first written."""
        return self._kv.nbytes

    def forget(self) -> None:
        """Keep nothing of earlier forward passes. A block that is held stays; between two passes none is."""
        self._manager.pool.reset()

    @torch.inference_mode()
    def read(self, rows: Sequence[Row]) -> list[Outcome]:
        """One outcome for each row, in order, as `wanted` describes them.

        Raises ValueError for rows that are empty, longer than `max_tokens`, or of a detail that is unknown, and for label
        logits of a model without a head.
        """
        for row in rows:
            if not 1 <= len(row.token_ids) <= self.max_tokens:
                raise ValueError(f"a row has {len(row.token_ids)} tokens, expected 1 to {self.max_tokens}")
        wanted = [wanted_of(row) for row in rows]
        if not self._has_head and any(isinstance(each, LabelLogits) for each in wanted):
            raise ValueError("label logits are asked of a model that was loaded without its output head")
        outcomes: dict[int, Floats] = {}
        with Walk(rows, self._manager, self._kv, self._step_tokens) as walk:
            for pieces in walk.steps():
                self._step(pieces, wanted, outcomes)
                walk.spoil([piece.row for piece in pieces if piece.row in outcomes and not _is_finite(outcomes[piece.row])])
            self.counts.shared_tokens += walk.shared_tokens
        self.counts.forwards += 1
        return [_outcome(outcomes[row]) for row in range(len(rows))]

    def _step(self, pieces: Sequence[Piece], wanted: Sequence[Wanted], outcomes: dict[int, Floats]) -> None:
        flat, reads = wanted_reads(pieces, wanted)
        batch = forward_batch([piece.run for piece in pieces], flat, BLOCK_SIZE)
        hidden = self.model(batch, self._kv)
        store_reads(hidden, reads, wanted, outcomes, self.model, self._known_tokens)
        self.counts.steps += 1
        self.counts.computed_tokens += len(batch.slots)


def _is_finite(values: Floats) -> bool:
    return bool(np.isfinite(values).all())


def _outcome(values: Floats) -> Outcome:
    return values if _is_finite(values) else ItemFailure("invalid_model_output", "the model's numbers are not finite")
