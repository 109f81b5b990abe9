"""EndpointModel: a decoder, and a head that compares ends of options with the end of the prompt, in memory."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Protocol

import torch

from headway.decisions.planner import decisions_planner
from headway.decisions.reader import DecisionReader
from headway.runtime.decoder.wanted import HiddenAt
from headway.runtime.loaded_model import LoadedModel
from headway.runtime.model_facts import ModelFacts
from headway.runtime.readers.endpoints.reader import READOUT
from headway.runtime.row import ItemFailure, Outcome, Row


class HiddenTrunk(Protocol):
    """What makes hidden states of rows that want `HiddenAt`."""

    def read(self, rows: Sequence[Row]) -> list[Outcome]: ...

    def forget(self) -> None: ...

    @property
    def nbytes(self) -> int: ...

    @property
    def vocab_size(self) -> int: ...


class EndpointHead(Protocol):
    """Ends of options [options, hidden] and the prompt's end [hidden], float32 -> logits [options]."""

    def logits(self, candidates: torch.Tensor, query: torch.Tensor, /) -> torch.Tensor: ...

    @property
    def nbytes(self) -> int: ...


class EndpointModel(LoadedModel):
    """Rows of the readout `candidates`: logits of the options, from the states at their ends and at the row's end."""

    def __init__(self, facts: ModelFacts, reader: DecisionReader, trunk: HiddenTrunk, head: EndpointHead):
        self.facts = facts
        self.planners = {"decisions": decisions_planner(reader, facts)}
        self._trunk = trunk
        self._head = head

    @torch.inference_mode()
    def forward(self, rows: Sequence[Row]) -> list[Outcome]:
        return [self._read(outcome) for outcome in self._trunk.read(rows)]

    def forget(self) -> None:
        self._trunk.forget()

    def _read(self, outcome: Outcome) -> Outcome:
        if isinstance(outcome, ItemFailure):
            return outcome
        states = torch.from_numpy(outcome)
        return self._head.logits(states[:-1], states[-1]).numpy()

    def probe_rows(self, chance: Random, length: int) -> list[Row]:
        ids = tuple(chance.randrange(self._trunk.vocab_size) for _ in range(max(length, 3)))
        return [Row(ids, READOUT, HiddenAt((len(ids) // 3, len(ids) // 2, len(ids) - 1)))]

    @property
    def memory_bytes(self) -> int:
        return self._trunk.nbytes + self._head.nbytes
