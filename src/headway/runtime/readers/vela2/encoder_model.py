"""SequenceModel: an encoder and the marker head in memory."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import torch

from headway.decisions.planner import decisions_planner
from headway.kernels.packed_batch import pack
from headway.models.encoders.encoder import Encoder
from headway.runtime.loaded_model import LoadedModel
from headway.runtime.model_facts import ModelFacts
from headway.runtime.readers.vela2.encoder_reader import SequenceReader
from headway.runtime.readers.vela2.marker_readout import MarkerReadout
from headway.runtime.readers.vela2.sequence import READOUT, Asked, Marks
from headway.runtime.row import ItemFailure, Outcome, Row


class SequenceModel(LoadedModel):
    """All rows of a pass are packed; each is read by itself."""

    def __init__(self, facts: ModelFacts, reader: SequenceReader, encoder: Encoder, readout: MarkerReadout, vocabulary: int, encoder_bytes: int):
        self.facts = facts
        self.planners = {"decisions": decisions_planner(reader, facts)}
        self._encoder = encoder
        self._readout = readout
        self._vocabulary = vocabulary
        self._encoder_bytes = encoder_bytes

    @torch.inference_mode()
    def forward(self, rows: Sequence[Row]) -> list[Outcome]:
        batch = pack([row.token_ids for row in rows])
        hidden = self._encoder.encode(batch).last
        return [self._read(row, hidden[start:end]) for row, start, end in zip(rows, batch.starts[:-1], batch.starts[1:], strict=True)]

    def _read(self, row: Row, hidden: torch.Tensor) -> Outcome:
        assert isinstance(row.detail, Marks)
        read = self._readout.read(hidden.float(), row.detail)
        return read if read.are_finite else ItemFailure("invalid_model_output", "the model's numbers are not finite")

    def probe_rows(self, chance: Random, length: int) -> list[Row]:
        ids = tuple(chance.randrange(self._vocabulary) for _ in range(max(length, 3)))
        third = len(ids) // 3
        return [Row(ids, READOUT, Marks((Asked(0, (third, 2 * third), third, len(ids)),), (0, third), (2 * third, len(ids) - 1)))]

    @property
    def memory_bytes(self) -> int:
        return self._encoder_bytes + self._readout.nbytes
