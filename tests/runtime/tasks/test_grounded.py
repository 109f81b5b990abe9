"""Grounded heads against transformers: which tokens of an answer pass, in what pair, and what is cut when it is long."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForTokenClassification, AutoTokenizer

from headway.errors import ArtifactError, RequestError
from headway.wire.classify import ClassifyRequest, GroundedInput, TextInput, WindowOption
from tests.runtime.tasks.task_models import TaskModels, answer, load

ANSWER = "The Eiffel Tower 🙂 is 330 metres high,  and stands in Lyon."
QUESTION = "How high is the Eiffel Tower?"
CONTEXT = "The Eiffel Tower in Paris {was} finished in 1889 and is 330 metres high."


def unsupported(folder: Path, first: str, answer_text: str, limit: int | None = None) -> list[tuple[int, int, float]]:
    """Code points and probability of every token of the answer, by transformers."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForTokenClassification.from_pretrained(folder).eval()
    cut = {} if limit is None else {"truncation": "only_first", "max_length": limit}
    encoded = tokenizer(first, answer_text, return_tensors="pt", return_offsets_mapping=True, **cut)
    parts = encoded.sequence_ids(0)
    offsets = encoded.pop("offset_mapping")[0].tolist()
    with torch.inference_mode():
        shares = model(**encoded).logits[0].softmax(-1)[:, 1].tolist()
    return [(start, end, share) for (start, end), share, part in zip(offsets, shares, parts, strict=True) if part == 1]


@pytest.mark.parametrize("variant", ["grounded-bert", "grounded-modernbert"])
def test_unsupported_runs_of_an_answer(task_models: TaskModels, variant: str) -> None:
    expected = unsupported(task_models.folder(variant), f"Question: {QUESTION}\nContext: {CONTEXT}", ANSWER)
    model = task_models.load(variant)
    ranked = sorted(share for _, _, share in expected)
    middle = (ranked[len(ranked) // 2 - 1] + ranked[len(ranked) // 2]) / 2  # between two tokens, so that rounding decides nothing
    given = (GroundedInput(ANSWER, CONTEXT, QUESTION),)
    for threshold in (None, middle, 0.0, 1.0):
        body = answer(model, "classify", ClassifyRequest(given, threshold=threshold, return_tokens=True))
        result = body["results"][0]
        assert [(token["start"], token["end"]) for token in result["tokens"]] == [(start, end) for start, end, _ in expected]
        bound = 0.5 if threshold is None else threshold
        runs: list[list[float]] = []
        before = False
        for start, end, share in expected:
            passes = share >= bound
            if passes and before:
                runs[-1] = [runs[-1][0], end, max(runs[-1][2], share)]
            elif passes:
                runs.append([start, end, share])
            before = passes
        found = [(span["start"], span["end"], span["probability"]) for span in result["spans"]]
        trimmed = [(s + len(ANSWER[s:e]) - len(ANSWER[s:e].lstrip()), e - len(ANSWER[s:e]) + len(ANSWER[s:e].rstrip()), p) for s, e, p in runs]
        wanted = [each for each in trimmed if each[0] < each[1]]
        assert [each[:2] for each in found] == [each[:2] for each in wanted]
        assert all(abs(one[2] - other[2]) <= 1e-3 for one, other in zip(found, wanted, strict=True))
        assert all(ANSWER[span["start"] : span["end"]] == span["text"] and span["label"] == "unsupported" for span in result["spans"])


def test_a_long_context_is_cut_at_its_end_and_the_answer_stays_whole(task_models: TaskModels) -> None:
    folder = task_models.folder("grounded-bert")
    long = " ".join(f"Tower {i} in Paris was finished in {1500 + i}." for i in range(150))
    expected = unsupported(folder, f"Question: {QUESTION}\nContext: {long}", ANSWER, limit=512)
    body = answer(task_models.load("grounded-bert"), "classify",
                  ClassifyRequest((GroundedInput(ANSWER, long, QUESTION),), overflow="truncate", threshold=0.0, return_tokens=True))  # fmt: skip
    result = body["results"][0]
    assert len(result["tokens"]) == len(expected)
    assert abs(result["spans"][0]["probability"] - max(share for _, _, share in expected)) <= 1e-3
    assert result["input"]["processed_tokens"] == 512
    assert result["input"]["truncated"]


def test_what_does_not_fit(task_models: TaskModels) -> None:
    model = task_models.load("grounded-bert")
    long = "word " * 700
    inputs = (GroundedInput("yes", long), GroundedInput(long, "context"), GroundedInput("  ", "context"), TextInput("a text"), GroundedInput("fine"))
    for overflow in ("reject", "truncate"):
        codes = [result.get("error") for result in answer(model, "classify", ClassifyRequest(inputs, overflow=overflow))["results"]]
        assert codes == ["max_length_exceeded" if overflow == "reject" else None, "max_length_exceeded", "invalid_input", "invalid_input", None]
    for request in (ClassifyRequest(inputs, overflow="window"), ClassifyRequest(inputs, window=WindowOption(100, 10))):
        with pytest.raises(RequestError, match=r"policies reject, truncate|needs overflow: window"):
            answer(model, "classify", request)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("input_pair", ["{question} only", "answer"], "names {question} and {context}"),
        ("input_pair", ["{question} {context} {context}", "answer"], "names {question} and {context}"),
        ("input_pair", ["{question.x} {context}", "answer"], "names {question} and {context}"),
        ("input_pair", ["{question} {context}", "context"], '"answer"'),
        ("token_threshold", 1.5, "a number from 0 to 1"),
        ("threshold_comparison", "more", "greater_or_equal"),
        ("label2id", {"supported": 1, "unsupported": 0}, "label2id"),
    ],
)  # fmt: skip
def test_operating_points_that_are_refused(task_models: TaskModels, tmp_path: Path, field: str, value: object, message: str) -> None:
    folder = tmp_path / "package"
    shutil.copytree(task_models.folder("grounded-bert"), folder)
    path = folder / "operating_point.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {field: value}))
    with pytest.raises(ArtifactError, match=message) as refused:
        load(folder)
    assert refused.value.reason == "operating_point_invalid"


def test_braces_in_texts_are_not_placeholders(task_models: TaskModels) -> None:
    folder = task_models.folder("grounded-bert")
    expected = unsupported(folder, "Question: {context}\nContext: {question} {0}", "an answer")
    body = answer(task_models.load("grounded-bert"), "classify",
                  ClassifyRequest((GroundedInput("an answer", "{question} {0}", "{context}"),), threshold=0.0))  # fmt: skip
    assert abs(body["results"][0]["spans"][0]["probability"] - max(share for _, _, share in expected)) <= 1e-3
