"""A decision model whose scores stand in the options: `name=2.5` has the logit 2.5. For tests of what is around models."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np

from headway.decisions.planner import decisions_planner
from headway.decisions.question import Option, Question, QuestionType, Subject
from headway.decisions.reader import DecisionReader, FoundSpan, QuestionPlan, Reading
from headway.runtime.loaded_model import LoadedModel, Planner, Surface
from headway.runtime.model_facts import ModelFacts
from headway.runtime.plan import run_plan
from headway.runtime.row import ItemFailure, Outcome, Row
from headway.wire.decision_body import read_decision_body
from headway.wire.decisions import QUESTION_TYPES, DecisionRequest

LONGEST_STATE = 1000


class TableReader(DecisionReader):
    """An option without `=` has the logit 0; `=fail` fails its row. A state above LONGEST_STATE characters is too long.
    Spans are found where a label's name stands in the text. `asked` are all questions so far, by subject."""

    question_types: frozenset[QuestionType] = frozenset(QUESTION_TYPES)

    def __init__(self, comfortable: int = 255, temperatures: dict[str, float] | None = None, abstain: float | None = None):
        self.comfortable_options = comfortable
        self.temperatures = temperatures or {}
        self.abstain = abstain
        self.asked: list[tuple[Subject, Question]] = []
        self.presets = {"warm": Question("score", "How warm is it?", (Option("0", "cold"), Option("1", "warm=2")))}

    def plan(self, subject: Subject, questions: Sequence[Question]) -> list[QuestionPlan | ItemFailure]:
        self.asked += [(subject, question) for question in questions]
        return [self._plan(subject, question) for question in questions]

    def _plan(self, subject: Subject, question: Question) -> QuestionPlan | ItemFailure:
        state = str(subject.state)
        if len(state) > LONGEST_STATE:
            return ItemFailure("max_length_exceeded", "too long")
        texts = tuple(_scored_text(question, option) for option in question.options)
        spans = tuple(
            FoundSpan(option.key, state.index(option.key), state.index(option.key) + len(option.key), option.key, 0.75)
            for option in question.options if question.type == "span" and option.key in state
        )  # fmt: skip

        def read(outcomes: Sequence[Outcome]) -> Reading:
            return Reading(outcomes[0], abstain=self.abstain, spans=spans, extras={"read": len(state)})

        return QuestionPlan((Row(tuple(map(ord, state)), "table", texts),), read, len(state), complete="unread" not in state)

    def temperature(self, kind: QuestionType, options: int) -> float:
        return self.temperatures.get(f"{kind}.{options}", self.temperatures.get(kind, 1.0))


def _scored_text(question: Question, option: Option) -> str:
    return str(option.description) if question.type in ("noul", "score") else option.key


class TableModel(LoadedModel):
    def __init__(self, reader: TableReader, limits: dict[str, int] | None = None):
        self.reader = reader
        self.facts = ModelFacts(0, "float32", limits or {}, question_types=tuple(QUESTION_TYPES))
        self.planners: dict[Surface, Planner] = {"decisions": decisions_planner(reader, self.facts)}
        self.passes: list[int] = []

    def forward(self, rows: Sequence[Row]) -> list[Outcome]:
        self.passes.append(len(rows))
        return [_outcome(row.detail) for row in rows]  # type: ignore[arg-type]

    def probe_rows(self, chance: Random, length: int) -> list[Row]:
        return [Row((1,) * length, "table", ("a=1", "b=2"))]

    @property
    def memory_bytes(self) -> int:
        return 0


def _outcome(texts: Sequence[str]) -> Outcome:
    if any(text.endswith("=fail") for text in texts):
        return ItemFailure("unavailable", "told to fail")
    return np.array([float(text.rpartition("=")[2]) if "=" in text else 0.0 for text in texts])


def answer(model: TableModel, **fields: Any) -> dict[str, Any]:
    """The planner's body for a body of System One or of the runtime."""
    return run_plan(model, model.planners["decisions"](read_decision_body(fields)))


def answer_request(model: TableModel, request: DecisionRequest) -> dict[str, Any]:
    return run_plan(model, model.planners["decisions"](request))
