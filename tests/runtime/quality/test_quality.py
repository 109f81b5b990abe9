"""The packaged labelled set, what counts as better than a guess, and what cards say."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

from headway.decisions.planner import decisions_planner
from headway.decisions.question import Question, QuestionType, Subject
from headway.decisions.reader import DecisionReader, QuestionPlan, Reading
from headway.errors import ArtifactError
from headway.runtime.loaded_model import LoadedModel, Planner, Surface
from headway.runtime.model_facts import ModelFacts
from headway.runtime.quality.evaluation import TypeQuality, at_least, evaluate, quality_of
from headway.runtime.quality.labelled_set import labelled_questions
from headway.runtime.quality.record import quality_notes, quality_path, read_quality, write_quality
from headway.runtime.row import ItemFailure, Outcome, Row


class AnswerReader(DecisionReader):
    """Looks the truth up, and says it for the first `right` questions of each type and the contrary after that."""

    question_types: frozenset[QuestionType] = frozenset({"choice", "noul"})

    def __init__(self, right: int):
        self._truths = {(each.state, str(each.question.instructions)): each.truth for each in labelled_questions()}
        self._left = {"choice": right, "noul": right}

    def plan(self, subject: Subject, questions: Sequence[Question]) -> list[QuestionPlan | ItemFailure]:
        return [self._plan(subject, question) for question in questions]

    def _plan(self, subject: Subject, question: Question) -> QuestionPlan:
        truth = self._truths[subject.state, str(question.instructions)]
        self._left[question.type] -= 1
        if self._left[question.type] < 0:
            truth = (truth + 1) % len(question.options)
        scores = np.eye(len(question.options))[truth]
        return QuestionPlan((), lambda outcomes: Reading(scores), 1)


class AnswerModel(LoadedModel):
    def __init__(self, right: int):
        self.facts = ModelFacts(0, "float32", {}, question_types=("choice", "noul"))
        self.planners: dict[Surface, Planner] = {"decisions": decisions_planner(AnswerReader(right), self.facts)}

    def forward(self, rows: Sequence[Row]) -> list[Outcome]:
        raise AssertionError("there are no rows")

    def probe_rows(self, chance: Random, length: int) -> list[Row]:
        return []

    @property
    def memory_bytes(self) -> int:
        return 0


def test_the_set_is_large_varied_and_balanced() -> None:
    asked = labelled_questions()
    texts = {each.state for each in asked}
    assert len(texts) == 136
    topics = Counter(each.truth for each in asked if each.question.type == "choice")
    assert topics == dict.fromkeys(range(6), 16)
    for domain in ("about", "reviews"):
        truths = Counter(each.truth for each in asked if each.domain == domain)
        assert truths[0] == truths[1] >= 20


def test_right_answers_are_counted_by_type() -> None:
    assert {kind: found.right for kind, found in evaluate(AnswerModel(1000), labelled_questions()).items()} == {"choice": 96, "noul": 136}
    some = evaluate(AnswerModel(70), labelled_questions())
    assert (some["choice"].right, some["choice"].majority, some["choice"].beats_majority) == (70, 16, True)
    assert (some["noul"].right, some["noul"].majority, some["noul"].beats_majority) == (70, 68, False)


@pytest.mark.parametrize(("right", "asked", "share"), [(0, 10, 0.5), (5, 10, 0.5), (29, 96, 1 / 6), (83, 136, 0.5), (96, 96, 1 / 6)])
def test_chances_are_those_of_scipy(right: int, asked: int, share: float) -> None:
    assert at_least(right, asked, share) == pytest.approx(binomtest(right, asked, share, "greater").pvalue, rel=1e-9)


def test_a_little_better_is_not_better() -> None:
    nouls = [each for each in labelled_questions() if each.question.type == "noul"]
    least = next(right for right in range(137) if quality_of(nouls, right).beats_majority)
    assert binomtest(least, 136, 0.5, "greater").pvalue < 0.01 <= binomtest(least - 1, 136, 0.5, "greater").pvalue


def test_cards_say_low_quality_unless_a_record_says_otherwise(tmp_path: Path) -> None:
    cache = str(tmp_path)
    [unknown] = quality_notes("a" * 64, {"family": "f", "labels": "words"}, cache)
    assert "low quality" in unknown
    found: dict[QuestionType, TypeQuality] = {"choice": TypeQuality(96, 92, 16, 1e-60), "noul": TypeQuality(136, 69, 68, 0.47)}
    write_quality(quality_path("a" * 64, cache), "a" * 64, found, {"family": "f", "labels": "words"})
    choice, noul = quality_notes("a" * 64, {"family": "f", "labels": "words"}, cache)
    assert "low quality" not in choice
    assert "92 of 96" in choice
    assert noul.startswith("low quality for noul: 69 of 136")
    assert quality_notes("a" * 64, {"family": "f", "labels": "codes"}, cache) == (unknown,)


def test_a_damaged_record_is_refused(tmp_path: Path) -> None:
    path = quality_path("b" * 64, str(tmp_path))
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"format": "else"}))
    with pytest.raises(ArtifactError, match="no record of an evaluation"):
        read_quality("b" * 64, {}, str(tmp_path))


def test_the_models_that_are_served_by_default_have_records() -> None:
    from importlib.resources import files

    records: list[dict[str, Any]] = [json.loads(each.read_text()) for each in files("headway.runtime.quality").joinpath("records").iterdir()]
    assert {record["readout"]["family"] for record in records} >= {"label_logits", "sparrow"}
    for record in records:
        for kind, each in record["types"].items():
            recomputed = quality_of([q for q in labelled_questions() if q.question.type == kind], each["right"])
            assert recomputed == TypeQuality(**each)
