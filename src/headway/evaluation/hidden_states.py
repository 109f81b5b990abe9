"""hidden_states: requests -> the last hidden states from which their scores are read, batch by batch, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import torch

from headway.evaluation.batches import Batch, batches
from headway.evaluation.scoring import ScoringRequest
from headway.kernels.paged_kv import PagedKV
from headway.kvcache.runs import Run, forward_batch
from headway.models.causal_lm import CausalLM

BLOCK: Final = 16
STEP_TOKENS: Final = 2048
"""Tokens of a forward pass: enough to use all arithmetic, little enough for the memory of a laptop."""


@torch.inference_mode()
def hidden_states(model: CausalLM, requests: Sequence[ScoringRequest]) -> Iterator[tuple[Sequence[ScoringRequest], torch.Tensor]]:
    """(requests, [all their targets, hidden] in the dtype of the model) for each batch, in order. Row i is the state that predicts target i. One
    cache serves all batches."""
    found = list(batches(requests, STEP_TOKENS, BLOCK))
    if not found:
        return
    cache = PagedKV(1 + max(_blocks(batch) for batch in found), BLOCK, model.config.kv_shape, model.dtype)
    for batch in found:
        runs, rows = _runs(batch)
        yield [placed.request for placed in batch.members], model(forward_batch(runs, rows, BLOCK), cache)


def _blocks(batch: Batch) -> int:
    return sum(-(-len(placed.request.tokens) // BLOCK) - placed.shared // BLOCK for placed in batch.members)


def _runs(batch: Batch) -> tuple[list[Run], list[int]]:
    """Block 0 is nobody's: kernels read it as padding."""
    tables: dict[int, list[int]] = {}
    runs: list[Run] = []
    rows: list[int] = []
    free, offset = 1, 0
    for placed in batch.members:
        request = placed.request
        own = -(-len(request.tokens) // BLOCK) - placed.shared // BLOCK
        tables[placed.index] = [*(tables[placed.leader][: placed.shared // BLOCK] if placed.shared else ()), *range(free, free + own)]
        free += own
        runs.append(Run(list(request.tokens), tables[placed.index], placed.shared, placed.new))
        first = offset + request.start - 1 - placed.shared
        rows += range(first, first + len(request.targets))
        offset += placed.new
    return runs, rows
