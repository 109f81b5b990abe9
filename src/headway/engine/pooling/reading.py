"""The step's side of reading: which rows of a chunk are needed, and handing them to the readout of its request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import torch

from headway.engine.pooling.readout import Readout
from headway.engine.step_plan import Chunk

_LOGITS_SLICE: Final = 128  # rows of logits in memory at once, as for log-probabilities of prompts


def read_count(chunk: Chunk) -> int:
    """How many of the last rows of a chunk its readout needs."""
    readout = chunk.sequence.request.readout
    if readout is None:
        return 0
    return chunk.count if readout.all_rows else int(chunk.samples)


def take_readouts(chunks: list[Chunk], hidden: torch.Tensor, logits: Callable[[torch.Tensor], torch.Tensor]) -> list[Chunk]:
    """`hidden`: rows of all chunks, one after the other, on the device; `logits`: rows there -> float32 [N, vocabulary] on the CPU.

    Returns the chunks that were the last of their prompts. Raises StepError.
    """
    start = 0
    on_cpu = hidden.cpu()
    by_logits: list[tuple[Readout, int]] = []
    for chunk in chunks:
        count = read_count(chunk)
        readout = chunk.sequence.request.readout
        start += count
        if readout is None:
            continue
        if readout.reads_logits:
            by_logits.append((readout, start - 1))
        else:
            readout.take(chunk.start, on_cpu[start - count : start], chunk.samples)
    for first in range(0, len(by_logits), _LOGITS_SLICE):
        part = by_logits[first : first + _LOGITS_SLICE]
        found = logits(hidden[[row for _, row in part]])
        for (readout, _), row in zip(part, found, strict=True):
            readout.take(0, row[None], True)
    return [chunk for chunk in chunks if chunk.samples]
