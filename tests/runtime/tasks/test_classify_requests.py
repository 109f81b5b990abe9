"""Requests to classifiers that are refused as a whole, items that fail alone, and what answers say of long input."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from headway.errors import RequestError
from headway.runtime.long_input.windows import Window, covers
from headway.wire.classify import ClassifyRequest, GroundedInput, InvalidInput, TextInput, WindowOption
from tests.runtime.tasks.task_models import TaskModels, answer, load, rows_of

ONE = (TextInput("a text"),)


@pytest.mark.parametrize(
    ("variant", "fields", "message", "param"),
    [
        ("sequence-bert", {"head": "domain"}, "head must be one of default, found 'domain'", "head"),
        ("sequence-bert", {"max_tokens": 0}, "max_tokens must be from 3 to 512", "options.max_tokens"),
        ("sequence-bert", {"max_tokens": 2}, "max_tokens must be from 3 to 512", "options.max_tokens"),
        ("sequence-bert", {"max_tokens": 513}, "max_tokens must be from 3 to 512", "options.max_tokens"),
        ("sequence-bert", {"window": WindowOption(64, 0)}, "window needs overflow: window", "options.window"),
        ("sequence-bert", {"overflow": "window", "window": WindowOption(513, 0)}, "the limit of one sequence is 512", "options.window"),
        ("sequence-bert", {"overflow": "window", "window": WindowOption(2, 0)}, "no room for text", "options.window"),
        ("sequence-bert", {"overflow": "window", "window": WindowOption(64, 62)}, "window.overlap must be from 0 to 61", "options.window"),
        ("sequence-bert", {"overflow": "window", "window": WindowOption(64, 0), "max_tokens": 63}, "larger than max_tokens", "options.window"),
        ("sequence-bert", {"overflow": "window", "inputs": (TextInput("a"), TextInput("a", "b"))}, "input 1 is a pair", "options.overflow"),
        ("sequence-bert", {"threshold": 0.5}, "threshold is for heads that find spans", "options.threshold"),
        ("sequence-bert", {"return_tokens": True}, "return_tokens is for heads that find spans", "options.return_tokens"),
    ],
)  # fmt: skip
def test_requests_that_are_refused(task_models: TaskModels, variant: str, fields: dict[str, Any], message: str, param: str) -> None:
    with pytest.raises(RequestError, match=message) as refused:
        answer(task_models.load(variant), "classify", ClassifyRequest(**{"inputs": ONE, **fields}))
    assert refused.value.param == param


def test_one_bad_item_never_harms_another(task_models: TaskModels) -> None:
    model = task_models.load("sequence-bert")
    inputs = (
        TextInput("a text"), TextInput("word " * 600), InvalidInput("input 2 is a number"), GroundedInput("an answer"), TextInput("  \n"),
        TextInput("\u200b\u0000"), TextInput("a text"),
    )  # fmt: skip
    results = answer(model, "classify", ClassifyRequest(inputs))["results"]
    codes = [None, "max_length_exceeded", "invalid_input", "invalid_input", "invalid_input", "invalid_input", None]
    assert [result.get("error") for result in results] == codes
    assert [result["index"] for result in results] == list(range(7))
    assert results[0] | {"index": 6} == results[6]
    assert "input 1 has " in results[1]["message"]
    assert results[2]["message"] == "input 2 is a number"
    assert "a grounded answer, head default reads text and text_pair" in results[3]["message"]


def test_nothing_to_read_needs_no_forward_pass(task_models: TaskModels) -> None:
    model = task_models.load("token-bert")
    body = answer(model, "classify", ClassifyRequest((TextInput(""), TextInput(" \n ")), return_tokens=True))
    assert [(result["spans"], result["tokens"]) for result in body["results"]] == [([], []), ([], [])]
    with pytest.raises(StopIteration):
        next(model.planners["classify"](ClassifyRequest((TextInput(""),))))


def test_limits_count_special_tokens(task_models: TaskModels) -> None:
    """510 words of one token each and two special tokens are 512."""
    model = task_models.load("sequence-bert")
    for words, fits in ((510, True), (511, False)):
        text = "the " * words
        result = answer(model, "classify", ClassifyRequest((TextInput(text),)))["results"][0]
        assert ("error" not in result) is fits
        cut = answer(model, "classify", ClassifyRequest((TextInput(text),), overflow="truncate"))["results"][0]
        assert cut["input"] == {"tokens": words + 2, "processed_tokens": 512, "truncated": not fits}
    assert "has 513 tokens with its special tokens, the limit is 512" in result["message"]


def test_the_cut_text_keeps_its_special_tokens_and_its_beginning(task_models: TaskModels) -> None:
    for variant in ("sequence-bert", "sequence-roberta", "sequence-xlm-roberta"):
        model = task_models.load(variant)
        text = "The cafeteria opens at eight. " * 200
        (cut,) = rows_of(model, "classify", ClassifyRequest((TextInput(text),), overflow="truncate", max_tokens=40))
        (whole,) = rows_of(model, "classify", ClassifyRequest((TextInput(text[:900]),), overflow="truncate"))
        assert len(cut.token_ids) == 40
        assert cut.token_ids[:-1] == whole.token_ids[:39]
        assert cut.token_ids[-1] == whole.token_ids[-1]


@pytest.mark.parametrize("words", [1, 61, 62, 63, 200, 1000])
def test_windows_cover_the_text(task_models: TaskModels, words: int) -> None:
    model = task_models.load("scores-bert")  # its operating point says windows of 64 tokens that share 16
    request = ClassifyRequest((TextInput("the " * words),))
    rows = rows_of(model, "classify", request)
    result = answer(model, "classify", request)["results"][0]
    laid = [Window(window["start"], window["end"]) for window in result["windows"]]
    assert covers(laid, words)
    assert [len(row.token_ids) for row in rows] == [window.end - window.start + 2 for window in laid]
    assert result["input"] == {"tokens": words + 2, "processed_tokens": words + 2, "truncated": False, "windows": len(laid)}
    assert all(left.end - right.start >= 16 for left, right in pairwise(laid))


def test_over_the_scan_budget_nothing_is_read(task_models: TaskModels) -> None:
    model = task_models.load("scores-bert")
    inputs = (TextInput("the " * 5000), TextInput("the " * 10))
    body = answer(model, "classify", ClassifyRequest(inputs))
    assert body["results"][0]["error"] == "scan_budget_exceeded"
    assert "the scan budget is 4096" in body["results"][0]["message"]
    assert "error" not in body["results"][1]
    assert body["usage"]["input_tokens"] == 12
    wider = answer(model, "classify", ClassifyRequest(inputs, max_tokens=6000))
    assert wider["results"][0]["input"]["tokens"] == 5002
    assert load(task_models.folder("scores-bert"), max_scan_tokens=6000).facts.limits["max_scan_tokens"] == 6000
    assert load(task_models.folder("scores-bert"), max_scan_tokens=10).facts.limits["max_scan_tokens"] == 512


def test_a_cut_for_spans_is_the_longest_beginning_that_fits_by_itself(task_models: TaskModels) -> None:
    text = "groenlinks recursion cafeteria instructions " * 20
    for variant in ("token-bert", "token-roberta", "token-xlm-roberta"):
        model = task_models.load(variant)
        for allowed in (6, 7, 20, 33):
            request = ClassifyRequest((TextInput(text),), overflow="truncate", max_tokens=allowed, return_tokens=True)
            result = answer(model, "classify", request)["results"][0]
            end = result["tokens"][-1]["end"]
            alone = ClassifyRequest((TextInput(text[:end]),), return_tokens=True)
            assert answer(model, "classify", alone)["results"][0]["tokens"] == result["tokens"]
            assert result["input"]["processed_tokens"] <= allowed
            assert result["input"]["truncated"]
            longer = rows_of(model, "classify", ClassifyRequest((TextInput(text[: end + 1]),)))
            assert len(longer[0].token_ids) > allowed or text[end : end + 1] == " "
