"""Classifiers of every backbone against transformers: alone, in a batch, shortened, pairs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from headway.runtime.tasks.fixtures import VARIANTS
from headway.wire.classify import ClassifyRequest, TextInput
from tests.runtime.tasks.task_models import TaskModels, answer, answer_together, load
from tests.runtime.tasks.texts import ENGLISH, TEXTS

BACKBONES = sorted({name for task, name in VARIANTS.values() if task == "sequence"})
LONG = "The cafeteria opens at eight, write to Dana. " * 120


def oracle(folder: Path, inputs: list[Any], **cut: Any) -> np.ndarray:
    """Logits of transformers, one text or pair at a time."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder, attn_implementation="eager").eval()
    with torch.inference_mode():
        return torch.cat([model(**tokenizer(*each, return_tensors="pt", **cut)).logits for each in inputs]).double().numpy()


def softmax(logits: np.ndarray) -> np.ndarray:
    shares = np.exp(logits - logits.max(1, keepdims=True))
    return shares / shares.sum(1, keepdims=True)


@pytest.mark.parametrize("backbone", BACKBONES)
def test_probabilities_of_texts_and_pairs(task_models: TaskModels, backbone: str) -> None:
    variant = f"sequence-{backbone}"
    model = task_models.load(variant)
    inputs = [*((text,) for text in TEXTS), (ENGLISH, TEXTS[4]), ("a", TEXTS[3]), (LONG,), (LONG, TEXTS[3]), (TEXTS[0], LONG), (LONG, LONG)]
    expected = softmax(oracle(task_models.folder(variant), inputs, truncation=True))
    request = ClassifyRequest(tuple(TextInput(*each) for each in inputs), overflow="truncate")
    for found in (answer(model, "classify", request), answer_together(model, "classify", request)):
        probabilities = np.array([result["probabilities"] for result in found["results"]])
        assert np.abs(probabilities - expected).max() <= 1e-3
        labels = model.facts.heads[0].labels
        assert [result["label"] for result in found["results"]] == [labels[row.argmax()] for row in expected]
        assert [result["input"]["truncated"] for result in found["results"]] == [False] * 8 + [True] * 4
        assert all(result["input"]["processed_tokens"] == 512 for result in found["results"][8:])


def test_scores_are_independent_and_selected_by_the_operating_point(task_models: TaskModels) -> None:
    for variant in ("scores-bert", "scores-modernbert"):
        model = task_models.load(variant)
        expected = 1 / (1 + np.exp(-oracle(task_models.folder(variant), [(text,) for text in TEXTS[:3]])))
        body = answer(model, "classify", ClassifyRequest(tuple(TextInput(text) for text in TEXTS[:3]), overflow="reject"))
        assert body["kind"] == "scores"
        for result, scores in zip(body["results"], expected, strict=True):
            assert np.abs(np.array(result["scores"]) - scores).max() <= 1e-3
            passed = [label for label, score, bound in zip(body["labels"], scores, (0.5, 0.4, 0.6, 0.5), strict=True) if score >= bound]
            assert result["selected"] == passed


def test_a_mean_pooled_classifier(task_models: TaskModels, tmp_path: Path) -> None:
    folder = tmp_path / "mean"
    folder.mkdir()
    for file in task_models.folder("sequence-modernbert").iterdir():
        text = file.read_bytes()
        (folder / file.name).write_bytes(text.replace(b'"classifier_pooling": "cls"', b'"classifier_pooling": "mean"'))
    body = answer(load(folder), "classify", ClassifyRequest(tuple(TextInput(text) for text in TEXTS)))
    expected = softmax(oracle(folder, [(text,) for text in TEXTS]))
    assert np.abs(np.array([result["probabilities"] for result in body["results"]]) - expected).max() <= 1e-3
    first_token = answer(task_models.load("sequence-modernbert"), "classify", ClassifyRequest((TextInput(TEXTS[3]),)))
    assert np.abs(np.array(first_token["results"][0]["probabilities"]) - expected[3]).max() > 1e-2


def test_windows_take_the_largest_probability_of_each_label(task_models: TaskModels) -> None:
    """Each window is what transformers makes of the same ids in the same special tokens."""
    model = task_models.load("sequence-bert")
    body = answer(model, "classify", ClassifyRequest((TextInput(LONG),), overflow="window"))
    tokenizer = AutoTokenizer.from_pretrained(task_models.folder("sequence-bert"))
    network = AutoModelForSequenceClassification.from_pretrained(task_models.folder("sequence-bert")).eval()
    cut = tokenizer(LONG, truncation=True, max_length=512, stride=255, return_overflowing_tokens=True)["input_ids"]
    with torch.inference_mode():
        each = np.concatenate([softmax(network(torch.tensor([ids])).logits.double().numpy()) for ids in cut[:-1]])
    result = body["results"][0]
    assert len(result["windows"]) == len(cut) == result["input"]["windows"] > 3
    windows = np.array([window["probabilities"] for window in result["windows"]])
    # The last window of transformers is shorter, ours ends where the text does and is full.
    assert np.abs(windows[:-1] - each).max() <= 1e-3
    assert np.abs(np.array(result["probabilities"]) - windows.max(0)).max() == 0
    assert result["label"] == body["labels"][windows.max(0).argmax()]
    assert not result["input"]["truncated"]
