"""TaskModel: one encoder, its readouts, and the plans of the surfaces that they serve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

import torch

from headway.kernels.packed_batch import pack
from headway.models.encoders.encoder import Encoder
from headway.runtime.loaded_model import LoadedModel, Planner, Surface
from headway.runtime.model_facts import ModelFacts
from headway.runtime.row import Outcome, Row
from headway.runtime.tasks.readouts import Readout


@dataclass(frozen=True, slots=True)
class RowDetail:
    """What a row's readout must know. Tokens from `second_start` on are of type 1, None = all are of type 0. `layer` is the
    exit that is read, counted from 1, None = the last one."""

    second_start: int | None = None
    layer: int | None = None


class TaskModel(LoadedModel):
    """`readouts` by the name that rows give; `exits`: each of them with each layer that it is asked at, None = the last."""

    def __init__(
        self,
        encoder: Encoder,
        readouts: Mapping[str, Readout],
        facts: ModelFacts,
        planners: Mapping[Surface, Planner],
        *,
        vocab_size: int,
        memory_bytes: int,
        exits: Sequence[tuple[str, int | None]],
    ):
        self._encoder = encoder
        self._readouts = readouts
        self._vocab_size = vocab_size
        self._memory_bytes = memory_bytes
        self._exits = exits
        self.facts = facts
        self.planners = planners

    @property
    def memory_bytes(self) -> int:
        return self._memory_bytes

    @torch.inference_mode()
    def forward(self, rows: Sequence[Row]) -> list[Outcome]:
        groups: dict[tuple[str, int], list[int]] = {}
        details = [_detail(row) for row in rows]
        for number, (row, detail) in enumerate(zip(rows, details, strict=True)):
            groups.setdefault((row.readout, detail.layer or self._encoder.num_layers), []).append(number)
        batch = pack([row.token_ids for row in rows], _segments(rows, details))
        encoded = self._encoder.encode(batch, {layer for _, layer in groups})
        starts = batch.starts.tolist()
        outcomes: list[Outcome] = [None] * len(rows)
        for (readout, layer), numbers in groups.items():
            values = self._readouts[readout](encoded.exits[layer], [(starts[n], starts[n + 1]) for n in numbers])
            for number, value in zip(numbers, values, strict=True):
                outcomes[number] = value
        return outcomes

    def probe_rows(self, chance: Random, length: int) -> list[Row]:
        """Random tokens for every readout at every exit."""
        return [
            Row(tuple(chance.randrange(self._vocab_size) for _ in range(length)), readout, RowDetail(layer=layer))
            for readout, layer in self._exits
        ]


def _detail(row: Row) -> RowDetail:
    assert isinstance(row.detail, RowDetail)
    return row.detail


def _segments(rows: Sequence[Row], details: Sequence[RowDetail]) -> list[list[int]] | None:
    """Token types, None when all are 0."""
    if all(detail.second_start is None for detail in details):
        return None
    found = []
    for row, detail in zip(rows, details, strict=True):
        length = len(row.token_ids)
        start = length if detail.second_start is None else detail.second_start
        found.append([0] * start + [1] * (length - start))
    return found
