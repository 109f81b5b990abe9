"""Bodies of the runtime's own routes, as far as they can be checked without a model."""

from __future__ import annotations

import base64
import math
from typing import Any

import numpy as np
import pytest

from headway.errors import RequestError
from headway.wire.bundle import parse_bundle
from headway.wire.classify import GroundedInput, InvalidInput, TextInput, WindowOption, parse_classify
from headway.wire.embeddings import MAX_MEDIA_BYTES, Media, Text, TokenIds, parse_embeddings
from headway.wire.rerank import parse_rerank
from headway.wire.strict_json import NotFiniteError, dumps

SOUND = base64.b64encode(b"RIFF").decode()


def refused(parse: Any, fields: dict[str, Any], *more: Any) -> str:
    with pytest.raises(RequestError) as found:
        parse(fields, *more)
    return found.value.message


def test_classify_takes_everything_that_it_has() -> None:
    request = parse_classify(
        {
            "input": ["a", {"text": "b", "text_pair": "c"}, {"answer": "d", "context": "e"}, {"text": "f", "text_pair": None}],
            "head": "pii", "model": "m",
            "options": {"overflow": "window", "window": {"tokens": 16, "overlap": 4}, "max_tokens": 64, "threshold": 0, "return_tokens": True},
        }
    )  # fmt: skip
    assert request.inputs == (TextInput("a"), TextInput("b", "c"), GroundedInput("d", "e"), TextInput("f"))
    assert (request.head, request.overflow, request.max_tokens, request.threshold) == ("pii", "window", 64, 0.0)
    assert (request.window, request.return_tokens) == (WindowOption(16, 4), True)


def test_what_classify_is_not_told_is_the_heads_own() -> None:
    for nothing in ({}, {"options": None}, {"options": {}}, {"head": None}):
        request = parse_classify({"input": "a", **nothing})
        assert (request.head, request.overflow, request.max_tokens, request.window, request.threshold) == (None,) * 5
        assert (request.options.deadline_ms, request.options.return_meta) == (None, False)


CLASSIFY = [
    ({}, "input is required"),
    ({"input": []}, "from 1 to 2048"),
    ({"input": ["a"] * 2049}, "from 1 to 2048"),
    ({"input": 3}, "got a number"),
    ({"input": ["a", None]}, r"input[1] must be"),
    ({"input": {"text_pair": "a"}}, "input.text is required"),
    ({"input": [{"text": "a", "context": "b"}]}, "unknown fields: 'context'"),
    ({"input": [{"answer": "a", "text": "b"}]}, "unknown fields: 'text'"),
    ({"input": [{"answer": 3}]}, "input[0].answer must be text"),
    ({"input": "a", "head": " "}, "head is blank"),
    ({"input": "a", "options": {"overflow": "cut"}}, "one of reject, truncate, window"),
    ({"input": "a", "options": {"max_tokens": 0}}, "max_tokens must be at least 1"),
    ({"input": "a", "options": {"max_tokens": True}}, "max_tokens must be an integer"),
    ({"input": "a", "options": {"threshold": 1.1}}, "at most 1"),
    ({"input": "a", "options": {"window": {"tokens": 1}}}, "tokens must be at least 2"),
    ({"input": "a", "options": {"window": {}}}, "tokens is required"),
    ({"input": "a", "options": {"window": {"tokens": 4, "overlap": 4}}}, "must be less than"),
    ({"input": "a", "options": {"window": {"tokens": 9}, "max_tokens": 8}}, "more than max_tokens"),
    ({"input": "a", "options": {"window": {"tokens": 9}, "overflow": "reject"}}, "needs overflow window"),
    ({"input": "a", "options": {"deadline_ms": math.inf}}, "deadline_ms"),
    ({"input": "a", "options": []}, "options must be an object"),
    ({"input": "a", "texts": "a"}, "unknown fields: 'texts'"),
]


@pytest.mark.parametrize(("fields", "said"), CLASSIFY)
def test_classify_refuses(fields: dict[str, Any], said: str) -> None:
    assert said in refused(parse_classify, fields)


@pytest.mark.parametrize(
    ("given", "inputs", "single"),
    [
        ("a", (Text("a"),), True),
        (["a", ""], (Text("a"), Text("")), False),
        ([1, 2], (TokenIds((1, 2)),), True),
        ([[1, 2], [3]], (TokenIds((1, 2)), TokenIds((3,))), False),
        ({"type": "text", "text": "a"}, (Text("a"),), True),
        ([{"text": "a"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}], (Text("a"), Media("image", b"\0\0\0")), False),
        ([{"input_audio": {"data": SOUND, "format": "wav"}}], (Media("audio", b"RIFF"),), False),
        ([{"input_audio": {"data": "!"}}, "a"], (InvalidInput("the audio is not valid base64"), Text("a")), False),
        ([{"input_audio": {"data": ""}}], (InvalidInput("the audio is empty"),), False),
    ],
)
def test_embeddings_inputs(given: Any, inputs: tuple[Any, ...], single: bool) -> None:
    request = parse_embeddings({"input": given})
    assert request.inputs == inputs
    assert request.single == single


def test_media_are_bounded_one_by_one() -> None:
    for size, kind in ((MAX_MEDIA_BYTES, Media), (MAX_MEDIA_BYTES + 1, InvalidInput), (MAX_MEDIA_BYTES + 10_000, InvalidInput)):
        data = base64.b64encode(bytes(size)).decode()
        assert isinstance(parse_embeddings({"input": [{"input_audio": {"data": data}}]}).inputs[0], kind)


EMBEDDINGS = [
    ({}, "input is required"),
    ({"input": []}, "from 1 to 2048"),
    ({"input": [[]]}, "input[0] must be"),
    ({"input": [1, "a"]}, "a list of token ids"),
    ({"input": [1, True]}, "a list of token ids"),
    ({"input": [-1]}, "not between"),
    ({"input": [{"type": "text"}]}, "exactly one of"),
    ({"input": [{"type": "image_url", "text": "a"}]}, "must name it"),
    ({"input": [{"image_url": {"url": "https://example.org/a.png"}}]}, "nothing is fetched"),
    ({"input": [{"input_audio": {"data": SOUND, "format": "mp3"}}]}, "must be wav"),
    ({"input": "a", "dimensions": 0}, "dimensions must be at least 1"),
    ({"input": "a", "dimensions": 1.5}, "must be an integer"),
    ({"input": "a", "input_type": "passage"}, "one of query, document"),
    ({"input": "a", "encoding_format": "hex"}, "one of float, base64"),
    ({"input": "a", "options": {"overflow": "window"}}, "one of reject, truncate"),
    ({"input": "a", "user": 3}, "user must be text"),
]


@pytest.mark.parametrize(("fields", "said"), EMBEDDINGS)
def test_embeddings_refuse(fields: dict[str, Any], said: str) -> None:
    assert said in refused(parse_embeddings, fields)


def test_embeddings_take_everything_that_they_have() -> None:
    request = parse_embeddings(
        {"input": "a", "dimensions": 64.0, "layer": 3, "input_type": "query", "encoding_format": "base64", "user": "u",
         "options": {"overflow": "truncate", "max_tokens": 9, "deadline_ms": 5, "return_meta": True}}
    )  # fmt: skip
    assert (request.dimensions, request.layer, request.input_type, request.base64) == (64, 3, "query", True)
    assert (request.overflow, request.max_tokens, request.options.deadline_ms, request.options.return_meta) == ("truncate", 9, 5.0, True)


RERANK = [
    ({"documents": ["a"]}, "query is required"),
    ({"query": " ", "documents": ["a"]}, "query is blank"),
    ({"query": "q"}, "documents is required"),
    ({"query": "q", "documents": "a"}, "a list of texts"),
    ({"query": "q", "documents": []}, "from 1 to 1024"),
    ({"query": "q", "documents": ["a"] * 1025}, "from 1 to 1024"),
    ({"query": "q", "documents": ["a", 3]}, "documents[1] must be text"),
    ({"query": "q", "documents": ["a"], "top_n": 0}, "top_n"),
    ({"query": "q", "documents": ["a"], "layer": 3}, "together"),
    ({"query": "q", "documents": ["a"], "options": {"overflow": "truncate"}}, "must be reject"),
]


@pytest.mark.parametrize(("fields", "said"), RERANK)
def test_rerank_refuses(fields: dict[str, Any], said: str) -> None:
    assert said in refused(parse_rerank, fields)


def test_rerank_takes_everything_that_it_has() -> None:
    request = parse_rerank({"query": "q", "documents": ["a", ""], "top_n": 1, "return_documents": True, "layer": 2, "dimensions": 8, "options": {"overflow": "reject"}})
    assert (request.query, request.documents, request.top_n, request.return_documents) == ("q", ("a", ""), 1, True)
    assert (request.layer, request.dimensions) == (2, 8)


def test_a_bundle_keeps_bodies_for_their_surfaces() -> None:
    request = parse_bundle({"tasks": [{"id": "1", "classify": {"anything": 1}}], "options": {"deadline_ms": 7}}, ("classify", "rerank"), 1)
    assert (request.tasks[0].id, request.tasks[0].surface, request.tasks[0].body, request.deadline_ms) == ("1", "classify", {"anything": 1}, 7.0)
    assert refused(parse_bundle, {"tasks": [{"id": "1", "embeddings": {}}]}, ("classify",), 1).startswith("tasks[0] has unknown fields")


@pytest.mark.parametrize("value", [math.nan, math.inf, {"a": [1, {"b": -math.inf}]}, np.array([1.0, np.nan], np.float32), np.float32("inf")])
def test_json_never_holds_what_is_not_a_number(value: Any) -> None:
    with pytest.raises(NotFiniteError):
        dumps({"value": value})


def test_json_of_arrays_and_null() -> None:
    value = {"a": np.array([0.1, 2.0], np.float32), "b": None, "c": "null", "d": np.float64(1.5), "e": "é"}
    assert dumps(value) == '{"a":[0.1,2.0],"b":null,"c":"null","d":1.5,"e":"é"}'.encode()
