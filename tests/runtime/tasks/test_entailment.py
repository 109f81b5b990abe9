"""Entailment models as decision models, against the logits of transformers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from headway.decisions.question import Option, Question
from headway.errors import RequestError
from headway.runtime.tasks.entailment_reader import entailment_label
from headway.wire.decisions import DecisionPart, DecisionRequest
from tests.runtime.tasks.task_models import TaskModels, answer, answer_together, load

STATE = "My Rust program does not compile: the borrow checker says that `names` is moved."
OPTIONS = (Option("programming", "software and code"), Option("cooking"), Option("travel", "journeys"))
CHOICE = Question("choice", "This text is about {label}.", OPTIONS)
NOUL = Question("noul", "The text is about a language.", (Option("false"), Option("true")))
CRITERION = Question("noul", "Is it?", (Option("false"), Option("true", "The text is about Rust.")))


def request(**questions: Question) -> DecisionRequest:
    return DecisionRequest(DecisionPart(STATE, questions), "runtime")


def logits(folder: Path, hypotheses: list[str]) -> np.ndarray:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    with torch.inference_mode():
        return torch.cat([model(**tokenizer(STATE, each, return_tensors="pt")).logits for each in hypotheses]).double().numpy()


def softmax(x: np.ndarray) -> np.ndarray:
    return np.exp(x - x.max()) / np.exp(x - x.max()).sum()


@pytest.mark.parametrize("backbone", ["bert", "roberta", "deberta-v2", "modernbert"])
def test_choices_weigh_entailment_and_nouls_are_its_probability(task_models: TaskModels, backbone: str) -> None:
    variant = f"entailment-{backbone}"
    folder, model = task_models.folder(variant), task_models.load(variant)
    assert model.facts.question_types == ("choice", "noul")
    expected = logits(folder, ["This text is about software and code.", "This text is about cooking.", "This text is about journeys."])
    single, criterion = (softmax(each)[1] for each in logits(folder, ["The text is about a language.", "The text is about Rust."]))
    asked = request(topic=CHOICE, language=NOUL, rust=CRITERION)
    for body in (answer(model, "decisions", asked), answer_together(model, "decisions", asked)):
        answers: dict[str, Any] = body["answers"]
        shares = softmax(expected[:, 1])
        assert [abs(answers["topic"]["probabilities"][option.key] - share) <= 1e-3 for option, share in zip(OPTIONS, shares, strict=True)] == [True] * 3
        assert answers["topic"]["choice"] == OPTIONS[int(shares.argmax())].key
        assert abs(answers["language"]["noul"] - single) <= 1e-3
        assert abs(answers["rust"]["noul"] - criterion) <= 1e-3


@pytest.mark.parametrize(
    ("question", "message"),
    [
        (Question("choice", "About a topic.", OPTIONS), "exactly once, found it 0 times"),
        (Question("choice", "{label} or {label}", OPTIONS), "exactly once, found it 2 times"),
        (Question("noul", "Is it?", (Option("false", "no"), Option("true"))), "cannot say what false means"),
        (Question("score", "How?", (Option("0", "low"), Option("1", "high"))), "answers choice, noul questions, not score"),
    ],
)  # fmt: skip
def test_questions_that_cannot_be_asked(task_models: TaskModels, question: Question, message: str) -> None:
    model = task_models.load("entailment-bert")
    with pytest.raises(RequestError, match=message):
        answer(model, "decisions", request(bad=question))
    answers = answer(model, "decisions", request(bad=question, good=NOUL))["answers"]
    assert answers["bad"]["error"] == "invalid_question"
    assert 0 < answers["good"]["noul"] < 1


def test_a_state_over_the_limit_fails_its_questions(task_models: TaskModels) -> None:
    long = DecisionRequest(DecisionPart("word " * 600, {"a": NOUL, "b": CHOICE}), "runtime")
    answers = answer(task_models.load("entailment-bert"), "decisions", long)["answers"]
    assert [answers[name]["error"] for name in ("a", "b")] == ["max_length_exceeded"] * 2
    assert "the limit is 512" in answers["a"]["message"]


def test_labels_of_entailment() -> None:
    assert entailment_label(("contradiction", "entailment", "neutral")) == 1
    assert entailment_label(("ENTAILMENT", "NEUTRAL", "CONTRADICTION")) == 0
    assert entailment_label(("not_entailment", "entailment")) == 1
    for other in (("entailment", "neutral"), ("entailment", "contradiction", "neutral", "other"), ("a", "b"), ("entailment",)):
        assert entailment_label(other) is None


def test_other_classifiers_answer_no_questions(task_models: TaskModels) -> None:
    assert set(load(task_models.folder("sequence-bert")).planners) == {"classify"}
