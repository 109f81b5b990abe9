"""Which rows of a step's batch which adapter changes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from headway.engine.lora.adapter import Adapter
from headway.engine.lora.registry import AdapterRegistry
from headway.engine.step_plan import Chunk
from headway.kernels.batch import ForwardBatch
from headway.layers.low_rank import Rows

Span = tuple[int, int]


class StepAdapters:
    """Completes batches. Raises AdapterError for a step with an adapter whose weights cannot be read again: the step is then tried sequence
    by sequence, and those with that adapter fail alone."""

    def __init__(self, registry: AdapterRegistry):
        self._registry = registry

    def completed(self, batch: ForwardBatch, chunks: list[Chunk]) -> ForwardBatch:
        spans = adapter_spans(chunks)
        if not spans:
            return batch
        return replace(batch, adapters=tuple((_rows(each), self._registry.weights(adapter).updates) for adapter, each in spans.items()))


def adapter_spans(chunks: list[Chunk]) -> dict[Adapter, list[Span]]:
    """Half-open ranges of rows, neighbours joined."""
    spans: dict[Adapter, list[Span]] = {}
    offset = 0
    for chunk in chunks:
        adapter = chunk.sequence.request.adapter
        if adapter is not None:
            mine = spans.setdefault(adapter, [])
            begin = mine.pop()[0] if mine and mine[-1][1] == offset else offset
            mine.append((begin, offset + chunk.count))
        offset += chunk.count
    return spans


def _rows(spans: list[Span]) -> Rows:
    if len(spans) == 1:
        return slice(*spans[0])
    return torch.from_numpy(np.concatenate([np.arange(begin, end) for begin, end in spans]))
