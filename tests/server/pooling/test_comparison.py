"""Score, rerank, Cohere's embed and generative scoring over HTTP."""

from __future__ import annotations

import math

import pytest

from tests.server.api import Api, error, ok


def alike(a: int, b: int) -> float:
    """Cosine of what the scripted engine says of prompts with so many tokens."""
    return min(a, b) / math.sqrt(a * b)


@pytest.mark.parametrize("path", ["/score", "/v1/score"])
def test_score(api: Api, path: str) -> None:
    body = ok(api.post(path, {"text_1": "ab", "text_2": ["a", "abcd"]}))
    assert body["data"] == [{"index": i, "object": "score", "score": pytest.approx(alike(2, n))} for i, n in enumerate((1, 4))]
    assert (body["object"], body["usage"]["prompt_tokens"]) == ("list", 7)
    pairs = ok(api.post(path, {"queries": ["ab", "a"], "documents": ["a", "abcd"]}))
    assert [each["score"] for each in pairs["data"]] == [pytest.approx(alike(2, 1)), pytest.approx(alike(1, 4))]


@pytest.mark.parametrize("path", ["/rerank", "/v1/rerank", "/v2/rerank"])
def test_rerank_is_best_first(api: Api, path: str) -> None:
    body = ok(api.post(path, {"query": "abcd", "documents": ["a", {"text": "abcde"}, "abcd", "a"]}))
    assert [each["index"] for each in body["results"]] == [2, 1, 0, 3]
    assert body["results"][1] == {"index": 1, "document": {"text": "abcde"}, "relevance_score": pytest.approx(alike(4, 5))}
    assert [each["index"] for each in ok(api.post(path, {"query": "abcd", "documents": ["a", "abcd"], "top_n": 1}))["results"]] == [1]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/score", {}), ("/score", {"text_1": "a"}), ("/score", {"text_1": "a", "queries": "a", "text_2": "b"}),
        ("/score", {"text_1": ["a", "b"], "text_2": ["a", "b", "c"]}), ("/score", {"text_1": [], "text_2": []}), ("/score", {"text_1": 5, "text_2": "b"}),
        ("/rerank", {"query": "a"}), ("/rerank", {"query": "a", "documents": []}), ("/rerank", {"query": "a", "documents": [{"image": "x"}]}),
        ("/rerank", {"query": "a", "documents": ["a"], "top_n": -1}), ("/rerank", {"query": "a", "documents": ["a"] * 1025}),
        ("/v2/embed", {}), ("/v2/embed", {"texts": ["a"], "inputs": [{"content": [{"type": "text", "text": "a"}]}]}),
        ("/v2/embed", {"texts": ["a"], "embedding_types": ["int8"]}), ("/v2/embed", {"texts": ["a"], "images": ["x"]}),
        ("/v2/embed", {"texts": ["abc"], "max_tokens": 2, "truncate": "NONE"}),
        ("/generative_scoring", {"query": "a", "items": ["b"]}), ("/generative_scoring", {"query": "a", "items": ["b"], "label_token_ids": [258]}),
        ("/generative_scoring", {"query": "a", "items": ["b"], "label_token_ids": [1, 1]}), ("/generative_scoring", {"query": "", "items": [""], "label_token_ids": [1]}),
    ],
)  # fmt: skip
def test_wrong_bodies(api: Api, path: str, body: dict[str, object]) -> None:
    error(api.post(path, body), 400)


def test_embeddings_for_cohere_clients(api: Api) -> None:
    body = ok(api.post("/v2/embed", {"texts": ["a", "abcd"], "embedding_types": ["float", "base64"], "output_dimension": 2, "input_type": "search_query"}))
    assert body["embeddings"]["float"] == [pytest.approx([1, 0]), pytest.approx([2**-0.5] * 2)]
    assert len(body["embeddings"]["base64"]) == 2
    assert (body["texts"], body["response_type"]) == (["a", "abcd"], "embeddings_by_type")
    assert body["meta"] == {"api_version": {"version": "2"}, "billed_units": {"input_tokens": 5}}
    parts = [{"content": [{"type": "text", "text": "ab"}, {"type": "text", "text": "c"}]}]
    assert ok(api.post("/v2/embed", {"inputs": parts}))["texts"] == ["ab\nc"]
    cut = ok(api.post("/v2/embed", {"texts": ["abcdef"], "max_tokens": 2, "truncate": "START"}))
    assert cut["meta"]["billed_units"]["input_tokens"] == 2


def test_generative_scores(api: Api) -> None:
    """The scripted logits are 1 for as many tokens as the prompt has, and 0 for the rest."""
    asked = {"query": "ab", "items": ["c", "cdef"], "label_token_ids": [4, 0]}
    whole = ok(api.post("/generative_scoring", asked))
    assert [each["score"] for each in whole["data"]] == [pytest.approx(1 / (1 + math.e)), pytest.approx(0.5)]
    assert whole["usage"]["prompt_tokens"] == 9
    plain = ok(api.post("/generative_scoring", {**asked, "apply_softmax": False}))
    assert plain["data"][1]["score"] == pytest.approx(math.e / (6 * math.e + 252))
    assert ok(api.post("/generative_scoring", {**asked, "query": [1, 2], "items": [[3], [4]], "item_first": True}))["usage"]["prompt_tokens"] == 6
