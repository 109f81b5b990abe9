"""LabelLogitsModel: a language model in memory, read through the labels of its replies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from headway.artifacts.tokenizer import Tokenizer
from headway.decisions.label_logits.reader import READOUT
from headway.decisions.planner import decisions_planner
from headway.decisions.reader import DecisionReader
from headway.runtime.decoder.trunk import DecoderTrunk
from headway.runtime.decoder.wanted import LabelLogits
from headway.runtime.loaded_model import LoadedModel, Planner, Surface
from headway.runtime.model_facts import ModelFacts
from headway.runtime.row import Outcome, Row


class LabelLogitsModel(LoadedModel):
    """Outcomes: float32 [labels + 2], see `decoder.wanted`. `labels` are some of the token ids that the reader asks for."""

    def __init__(self, facts: ModelFacts, reader: DecisionReader, trunk: DecoderTrunk, tokenizer: Tokenizer, labels: Sequence[int]):
        self.facts = facts
        self.reader = reader
        self.planners: Mapping[Surface, Planner] = {"decisions": decisions_planner(reader, facts)}
        self._trunk = trunk
        self._labels = LabelLogits(tuple(labels))
        self._ordinary = [i for i in range(tokenizer.vocab_size) if i not in tokenizer.added_ids]

    def forward(self, rows: Sequence[Row]) -> list[Outcome]:
        return self._trunk.read(rows)

    def forget(self) -> None:
        self._trunk.forget()

    def probe_rows(self, chance: Random, length: int) -> list[Row]:
        return [Row(tuple(chance.choices(self._ordinary, k=length)), READOUT, self._labels)]

    @property
    def memory_bytes(self) -> int:
        return self._trunk.memory_bytes
