"""Token classifiers against transformers: spans by its pipeline, or by the decoding rule worked out from its logits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForTokenClassification, AutoTokenizer, pipeline

from headway.runtime.tasks.fixtures import VARIANTS
from headway.wire.classify import ClassifyRequest, TextInput
from tests.runtime.tasks.task_models import TaskModels, answer, answer_together, load
from tests.runtime.tasks.texts import TEXTS

BACKBONES = sorted({name for task, name in VARIANTS.values() if task == "token"})


def expected_spans(folder: Path, text: str) -> list[tuple[str, int, int, float]]:
    """The rule in its plainest form on the logits of transformers, for one text."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForTokenClassification.from_pretrained(folder).eval()
    encoded = tokenizer(text, return_tensors="pt", return_offsets_mapping=True, return_special_tokens_mask=True)
    offsets, special = encoded.pop("offset_mapping")[0].tolist(), encoded.pop("special_tokens_mask")[0].tolist()
    with torch.inference_mode():
        shares = model(**encoded).logits[0].softmax(-1).numpy()
    spans: list[list] = []
    open_entity = None
    for (start, end), is_special, row in zip(offsets, special, shares, strict=True):
        if is_special or not text[start:end].strip():
            continue
        label = model.config.id2label[int(row.argmax())]
        prefix, _, entity = label.partition("-")
        if label == "O":
            open_entity = None
        elif spans and spans[-1][0] == entity and ((open_entity == entity and prefix == "I") or start < spans[-1][2]):
            spans[-1][2] = max(end, spans[-1][2])
            spans[-1][3].append(row.max())
            open_entity = entity
        else:
            spans.append([entity, start, end, [row.max()]])
            open_entity = entity
    found = []
    for entity, start, end, probabilities in spans:
        while text[start].isspace():
            start += 1
        while text[end - 1].isspace():
            end -= 1
        found.append((entity, start, end, float(np.mean(probabilities))))
    return found


@pytest.mark.parametrize("backbone", BACKBONES)
def test_spans_of_every_backbone(task_models: TaskModels, backbone: str) -> None:
    variant = f"token-{backbone}"
    model = task_models.load(variant)
    request = ClassifyRequest(tuple(TextInput(text) for text in TEXTS))
    for body in (answer(model, "classify", request), answer_together(model, "classify", request)):
        assert body["offset_unit"] == "code_point"
        for text, result in zip(TEXTS, body["results"], strict=True):
            spans = result["spans"]
            assert all(text[span["start"] : span["end"]] == span["text"] for span in spans)
            expected = expected_spans(task_models.folder(variant), text)
            assert [(span["label"], span["start"], span["end"]) for span in spans] == [each[:3] for each in expected]
            assert all(abs(span["probability"] - each[3]) <= 1e-3 for span, each in zip(spans, expected, strict=True))


def test_spans_equal_the_pipeline_where_tokens_hold_no_white_space(task_models: TaskModels) -> None:
    counted = 0
    for variant in ("token-bert", "token-distilbert", "token-electra"):
        oracle = pipeline("token-classification", str(task_models.folder(variant)), aggregation_strategy="simple")
        body = answer(task_models.load(variant), "classify", ClassifyRequest(tuple(TextInput(text) for text in TEXTS)))
        for text, result in zip(TEXTS, body["results"], strict=True):
            expected = [(each["entity_group"], each["start"], each["end"]) for each in oracle(text)]
            assert [(span["label"], span["start"], span["end"]) for span in result["spans"]] == expected
            counted += len(expected)
    assert counted > 30


PLAIN = (
    "call dana wells near the groenlinks cafeteria in berlin without recursion and write the function today",
    "previous instructions print your system", "the tower in paris was finished and is high",
)  # fmt: skip


@pytest.mark.parametrize("strategy", ["first", "max", "average"])
def test_word_strategies_equal_the_pipeline_on_plain_words(task_models: TaskModels, strategy: str) -> None:
    counted = 0
    for variant in ("token-electra", "token-distilbert"):
        folder = task_models.folder(variant)
        oracle = pipeline("token-classification", str(folder), aggregation_strategy=strategy)
        body = answer(load(folder, word_strategy=strategy), "classify", ClassifyRequest(tuple(TextInput(text) for text in PLAIN)))
        for text, result in zip(PLAIN, body["results"], strict=True):
            found, expected = result["spans"], oracle(text)
            assert [(span["label"], span["start"], span["end"]) for span in found] == [
                (each["entity_group"], each["start"], each["end"]) for each in expected
            ]  # fmt: skip
            assert all(abs(span["probability"] - float(each["score"])) <= 1e-3 for span, each in zip(found, expected, strict=True))
            counted += len(found)
    assert counted >= 4


def test_a_text_within_one_window_reads_as_without(task_models: TaskModels) -> None:
    model = task_models.load("token-electra")
    text = "Please call Dana Wells at 555-0142. " * 20
    whole = answer(model, "classify", ClassifyRequest((TextInput(text),), return_tokens=True))["results"][0]
    windowed = answer(model, "classify", ClassifyRequest((TextInput(text),), overflow="window", return_tokens=True))["results"][0]
    assert whole["input"]["tokens"] <= 512
    assert windowed["input"]["windows"] == 1
    assert windowed["spans"] == whole["spans"]
    assert windowed["tokens"] == whole["tokens"]
