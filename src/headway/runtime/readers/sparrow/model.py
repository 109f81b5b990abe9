"""SparrowModel: a static package in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

import numpy as np

from headway.decisions.planner import decisions_planner
from headway.runtime.loaded_model import LoadedModel, Planner, Surface
from headway.runtime.model_facts import ModelFacts
from headway.runtime.readers.decision_limits import decision_limits
from headway.runtime.readers.sparrow.archive import SparrowArchive
from headway.runtime.readers.sparrow.reader import READOUT, SparrowReader
from headway.runtime.readers.sparrow.scorer import KINDS, SparrowQuestion, SparrowScorer
from headway.runtime.row import ItemFailure, Outcome, Row


class SparrowModel(LoadedModel):
    """Runs on the planning thread: a question costs less than handing it over. Outcomes: logits, float64 [options]."""

    uses_device_thread = False

    def __init__(self, archive: SparrowArchive):
        """Raises ValueError for arrays of the wrong shape."""
        self._scorer = SparrowScorer(archive.arrays, len(archive.vocabulary), archive.config.numbers)
        self._vocabulary = len(archive.vocabulary)
        limit = archive.config.max_tokens
        self.facts = ModelFacts(
            self._scorer.parameters, "float32", decision_limits(limit) | {"truncate_tokens": limit},
            question_types=tuple(sorted(KINDS)),
        )  # fmt: skip
        self.planners: Mapping[Surface, Planner] = {"decisions": decisions_planner(SparrowReader(archive), self.facts)}

    def forward(self, rows: Sequence[Row]) -> list[Outcome]:
        return [self._read(row) for row in rows]

    def _read(self, row: Row) -> Outcome:
        assert isinstance(row.detail, SparrowQuestion)
        scores = self._scorer.score(row.token_ids, row.detail)
        return scores if np.isfinite(scores).all() else ItemFailure("invalid_model_output", "the model's numbers are not finite")

    def probe_rows(self, chance: Random, length: int) -> list[Row]:
        def words(count: int) -> tuple[int, ...]:
            return tuple(chance.randrange(self._vocabulary) for _ in range(count))

        return [Row(words(length), READOUT, SparrowQuestion("choice", words(4), (words(2), words(3), words(1))))]

    @property
    def memory_bytes(self) -> int:
        return self._scorer.memory_bytes
