"""LayaModel: an encoder and the marker head in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

import numpy as np
import torch

from headway.decisions.planner import decisions_planner
from headway.kernels.packed_batch import pack
from headway.models.encoders.encoder import Encoder
from headway.runtime.loaded_model import LoadedModel, Planner, Surface
from headway.runtime.model_facts import ModelFacts
from headway.runtime.readers.laya.head import Marked, MarkerHead
from headway.runtime.readers.laya.reader import READOUT, LayaReader, Markers
from headway.runtime.row import ItemFailure, Outcome, Row


class LayaModel(LoadedModel):
    """Outcomes: float32 [options + actions], logits of both heads."""

    def __init__(self, facts: ModelFacts, reader: LayaReader, encoder: Encoder, head: MarkerHead, vocabulary: int, encoder_bytes: int):
        self.facts = facts
        self.planners: Mapping[Surface, Planner] = {"decisions": decisions_planner(reader, facts)}
        self._encoder = encoder
        self._head = head
        self._vocabulary = vocabulary
        self._encoder_bytes = encoder_bytes

    @torch.inference_mode()
    def forward(self, rows: Sequence[Row]) -> list[Outcome]:
        batch = pack([row.token_ids for row in rows])
        hidden = self._encoder.encode(batch).last
        marked = [_marked(row, int(start), int(end)) for row, start, end in zip(rows, batch.starts[:-1], batch.starts[1:], strict=True)]
        return [
            found if np.isfinite(found).all() else ItemFailure("invalid_model_output", "the model's numbers are not finite")
            for found in self._head.read(hidden, marked)
        ]

    def probe_rows(self, chance: Random, length: int) -> list[Row]:
        ids = tuple(chance.randrange(self._vocabulary) for _ in range(length))
        return [Row(ids, READOUT, Markers(kind, (length // 3, length // 2))) for kind in range(3)]

    @property
    def memory_bytes(self) -> int:
        return self._encoder_bytes + self._head.nbytes


def _marked(row: Row, start: int, end: int) -> Marked:
    assert isinstance(row.detail, Markers)
    return Marked(start, end, row.detail.kind, row.detail.at)
