"""A model whose raw scores are written into the state, and labelled examples drawn at a known temperature."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from headway.decisions.planner import decisions_planner
from headway.decisions.question import Question, QuestionType, Subject
from headway.decisions.reader import DecisionReader, QuestionPlan, Reading
from headway.runtime.calibration.scoring import ScoredExample
from headway.runtime.loaded_model import LoadedModel
from headway.runtime.model_facts import ModelFacts
from headway.runtime.row import ItemFailure, Outcome, Row


class PlantedReader(DecisionReader):
    """The state is the list of scores."""

    question_types: frozenset[QuestionType] = frozenset({"choice", "noul", "score", "set"})
    comfortable_options = 12

    def plan(self, subject: Subject, questions: Sequence[Question]) -> list[QuestionPlan | ItemFailure]:
        if subject.state == ["too long"]:
            return [ItemFailure("max_length_exceeded", "too long")] * len(questions)
        row = Row((1,), "scores", tuple(subject.state))
        return [QuestionPlan((row,), lambda values: Reading(values[0]), 1) for _ in questions]

    def temperature(self, kind: QuestionType, options: int) -> float:
        return 1.5


class PlantedModel(LoadedModel):
    def __init__(self) -> None:
        limits = {"max_input_tokens": 100, "min_options": 2, "max_options": 255, "min_levels": 2, "max_levels": 10}
        self.facts = ModelFacts(0, "float32", limits, question_types=("choice", "noul", "score", "set"))
        self.reader = PlantedReader()
        self.planners = {"decisions": decisions_planner(self.reader, self.facts)}
        self.forwards = 0

    def forward(self, rows: Sequence[Row]) -> list[Outcome]:
        self.forwards += 1
        return [np.array(row.detail) for row in rows]

    def probe_rows(self, chance: Random, length: int) -> list[Row]:
        return []

    @property
    def memory_bytes(self) -> int:
        return 0


def question(kind: str, options: int) -> dict[str, Any]:
    forms: dict[str, dict[str, Any]] = {
        "choice": {"criteria": {f"k{i}": None for i in range(options)}},
        "noul": {},
        "score": {"criteria": [f"level {i}" for i in range(options)]},
        "set": {"labels": [{"key": f"k{i}"} for i in range(options)]},
    }
    return {"type": kind, "instructions": "which?"} | forms[kind]


def answer(kind: str, index: int) -> Any:
    return {"choice": f"k{index}", "noul": bool(index), "score": index}[kind]


def truths(scores: np.ndarray, temperature: float, chance: np.random.Generator) -> np.ndarray:  # type: ignore[type-arg]
    """[N, options] -> [N]: drawn from softmax(scores / temperature)."""
    # The largest of the scaled scores and Gumbel noise is distributed that way.
    drawn = (scores / temperature + chance.gumbel(size=scores.shape)).argmax(1)
    assert isinstance(drawn, np.ndarray)
    return drawn


def examples(kind: QuestionType, options: int, count: int, temperature: float, seed: int) -> list[ScoredExample]:
    """Scored examples with a planted temperature."""
    chance = np.random.default_rng(seed)
    scores = chance.normal(0, 2 * temperature, (count, options))
    right, shares = truths(scores, temperature, chance), chance.random(count)
    return [ScoredExample(kind, options, *each) for each in zip(scores, right.tolist(), shares.tolist(), strict=True)]


def draw(kind: str, options: int, count: int, temperature: float, seed: int) -> list[dict[str, Any]]:
    """The same as lines of a file."""
    chance = np.random.default_rng(seed)
    scores = chance.normal(0, 2 * temperature, (count, options)).round(4)
    return [
        {"state": line.tolist(), "questions": {"q": question(kind, options)}, "answers": {"q": answer(kind, int(right))}}
        for line, right in zip(scores, truths(scores, temperature, chance), strict=True)
    ]


def draw_sets(labels: int, count: int, temperature: float, seed: int) -> list[dict[str, Any]]:
    """Lines of sets: every label is right with probability sigmoid(score / temperature)."""
    chance = np.random.default_rng(seed)
    lines = []
    for _ in range(count):
        scores = chance.normal(0, 2 * temperature, labels).round(4)
        right = np.flatnonzero(chance.random(labels) < 1 / (1 + np.exp(-scores / temperature)))
        answers = {"q": [f"k{i}" for i in right]}
        lines.append({"state": scores.tolist(), "questions": {"q": question("set", labels)}, "answers": answers})
    return lines


def write(path: Path, lines: Sequence[dict[str, Any]]) -> Path:
    path.write_text("\n".join(json.dumps(line) for line in lines) + "\n")
    return path
