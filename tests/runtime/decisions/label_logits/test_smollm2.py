"""The real SmolLM2 135M, a model that is served by default: label probabilities against transformers, and topics found."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from headway.artifacts.resolve import resolve
from headway.decisions.question import Subject
from headway.decisions.reader import QuestionPlan
from headway.runtime.decisions.label_logits.family import LabelLogitsFamily
from headway.runtime.decisions.label_logits.model import LabelLogitsModel
from headway.runtime.family import Placement
from headway.runtime.package import Package
from headway.runtime.quality.evaluation import evaluate
from headway.runtime.quality.labelled_set import labelled_questions
from tests.models.gguf_oracle import gguf_oracle
from tests.runtime.decisions.label_logits.test_reader import LATE, MOOD, STATE, TAGS, TEAM

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]  # transformers takes a minute or more to unpack the file


@pytest.fixture(scope="module")
def models() -> dict[str, LabelLogitsModel]:
    path = resolve("smollm2-135m-instruct")
    package, family = Package("smollm2-135m-instruct", path), LabelLogitsFamily()
    assert family.detect(package)
    spec = family.describe(package)
    found = {
        labels: family.load(package, spec, Placement("cpu", "float32", True, {"labels": labels}), lambda done, total: None)
        for labels in ("codes", "words")
    }
    return {labels: model for labels, model in found.items() if isinstance(model, LabelLogitsModel)}


def test_probabilities_are_those_of_transformers(models: dict[str, LabelLogitsModel]) -> None:
    oracle = gguf_oracle(resolve("smollm2-135m-instruct"))
    for model in models.values():
        plans = model.reader.plan(Subject(STATE), [TEAM, LATE, MOOD, TAGS])
        rows = [row for plan in plans if isinstance(plan, QuestionPlan) for row in plan.rows]
        for row, outcome in zip(rows, model.forward(rows), strict=True):
            with torch.inference_mode():
                wanted = torch.softmax(oracle(torch.tensor([row.token_ids])).logits[0, -1].float(), 0)
            labels = list(row.detail.token_ids)  # type: ignore[attr-defined]
            assert np.abs(np.exp(outcome[:-2] - outcome[-2]) - wanted[labels].numpy()).max() <= 1e-3


def test_words_beat_the_majority_class_on_topics(models: dict[str, LabelLogitsModel]) -> None:
    topics = [each for each in labelled_questions() if each.question.type == "choice"][::2]
    found = evaluate(models["words"], topics)["choice"]
    assert found.asked == 48
    assert found.beats_majority
