"""What a body may be, and how what it may not be is answered."""

from __future__ import annotations

import gzip
import json
import zlib
from typing import Any

import httpx
import pytest
import zstandard

from tests.runtime.arithmetic_model import ArithmeticModel
from tests.runtime.live_worker import LiveWorker, live_worker

EMBEDDINGS = "/v1/embeddings"
PHASES = ["parse", "tokenize", "queue", "forward", "post", "serialize", "total"]


def error(response: httpx.Response) -> tuple[int, str]:
    body = response.json()
    assert body.keys() == {"error"}
    assert body["error"].keys() == {"code", "message"}
    return response.status_code, body["error"]["code"]


def phases(response: httpx.Response) -> dict[str, float]:
    entries = [entry.split(";dur=") for entry in response.headers["server-timing"].split(", ")]
    assert all(len(value.partition(".")[2]) == 3 for _, value in entries)
    return {name: float(value) for name, value in entries}


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", "empty"),
        (b"[1]", "list"),
        (b'{"input": "a"', "not valid JSON"),
        (b'{"input": "\\ud800"}', "not valid JSON"),
        (b'{"input": "\xff"}', "not valid JSON"),
        (b'{"input": NaN}', "not valid JSON"),
        (b'{"input": "a", "surprise": 1}', "'surprise'"),
        (b'{"input": "a", "options": {"profile": "exact"}}', "profile was removed"),
        (b'{"input": "a", "options": {"deadline_ms": 0}}', "deadline_ms"),
        (b'{"input": "a", "options": {"deadline_ms": "1"}}', "deadline_ms must be a number, got text"),
        (b'{"input": "a", "options": {"return_meta": 1}}', "return_meta"),
        (b'{"input": "a", "layer": 2}', "no exits"),
        (b"[" * 100 + b"]" * 100, "nests"),
    ],
)
def test_bodies_that_are_wrong(worker: LiveWorker, raw: bytes, said: str) -> None:
    response = worker.client.post(EMBEDDINGS, content=raw, headers={"content-type": "application/json"})
    assert error(response) == (400, "invalid_request")
    assert said in response.json()["error"]["message"]
    assert list(phases(response)) == PHASES


def test_a_message_never_repeats_a_value(worker: LiveWorker) -> None:
    for body in ({"input": {"text": ["private words"]}}, {"input": "x", "encoding_format": "private words"}):
        response = worker.post(EMBEDDINGS, body)
        assert error(response) == (400, "invalid_request")
        assert "private words" not in response.text


@pytest.mark.parametrize("streamed", [False, True])
def test_bodies_over_the_limit(streamed: bool) -> None:
    raw = b'{"input": "' + b"x" * 5000 + b'"}'
    with live_worker({"m": ArithmeticModel()}, max_request_bytes=4000) as worker:
        content: Any = iter([raw[:1000], raw[1000:]]) if streamed else raw
        response = worker.client.post(EMBEDDINGS, content=content, headers={"content-type": "application/json"})
        assert error(response) == (413, "request_too_large")
        assert response.headers["connection"] == "close"
        assert worker.post("/v1/systemone", {"state": "x" * 5000}).status_code == 413  # what the operator says goes


def test_other_media_types(worker: LiveWorker) -> None:
    for kind in ("application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain"):
        response = worker.client.post(EMBEDDINGS, content=b'{"input": "a"}', headers={"content-type": kind})
        assert error(response) == (415, "invalid_request")
    for kind in ("application/json; charset=utf-8", "application/vnd.api+json", ""):
        assert worker.client.post(EMBEDDINGS, content=b'{"input": "a"}', headers={"content-type": kind}).status_code == 200


CODINGS = {
    "zstd": zstandard.ZstdCompressor().compress,
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "identity": bytes,
}


@pytest.mark.parametrize("coding", CODINGS)
def test_compressed_bodies(worker: LiveWorker, coding: str) -> None:
    raw = CODINGS[coding](json.dumps({"input": ["compressed", "x" * 900]}).encode())
    headers = {"content-type": "application/json", "content-encoding": coding}
    response = worker.client.post(EMBEDDINGS, content=raw, headers=headers)
    assert response.status_code == 200
    assert response.json()["data"][1]["embedding"] == [900 * ord("x"), 900]


@pytest.mark.parametrize("coding", ["zstd", "gzip", "deflate"])
def test_a_small_body_that_expands_beyond_the_limit(worker: LiveWorker, coding: str) -> None:
    raw = CODINGS[coding](b'{"input": "' + b"x" * 26_000_000 + b'"}')
    assert len(raw) < 100_000
    headers = {"content-type": "application/json", "content-encoding": coding}
    assert error(worker.client.post(EMBEDDINGS, content=raw, headers=headers)) == (413, "request_too_large")


def test_codings_that_are_unknown_or_damaged(worker: LiveWorker) -> None:
    headers = {"content-type": "application/json", "content-encoding": "br"}
    assert error(worker.client.post(EMBEDDINGS, content=b"x", headers=headers)) == (415, "invalid_request")
    for coding in ("zstd", "gzip", "deflate"):
        headers["content-encoding"] = coding
        assert error(worker.client.post(EMBEDDINGS, content=b"not compressed at all", headers=headers)) == (400, "invalid_request")


def test_long_bodies_are_planned_off_the_event_loop_with_the_same_answer(worker: LiveWorker) -> None:
    texts = [f"{n:04}" + "x" * 20 for n in range(1000)]
    response = worker.post(EMBEDDINGS, {"input": texts})
    assert len(response.content) > 16 * 1024
    assert [item["embedding"] for item in response.json()["data"]] == [[sum(map(ord, text)), 24] for text in texts]


def test_names_of_models() -> None:
    with live_worker({"first": ArithmeticModel(), "second": ArithmeticModel()}) as worker:
        for name in ("first", "/somewhere/first", "second"):
            response = worker.post(EMBEDDINGS, {"input": "a", "model": name})
            assert response.json()["model"] == name.rsplit("/", 1)[-1]
        assert error(worker.post(EMBEDDINGS, {"input": "a"})) == (400, "invalid_request")
        assert error(worker.post(EMBEDDINGS, {"input": "a", "model": "third"})) == (404, "model_not_found")
        assert error(worker.post(EMBEDDINGS, {"input": "a", "model": 3})) == (400, "invalid_request")


def test_routes_and_methods_that_are_not_there(worker: LiveWorker) -> None:
    assert error(worker.client.get("/v1/nothing")) == (404, "invalid_request")
    wrong = worker.client.get(EMBEDDINGS)
    assert error(wrong) == (405, "invalid_request")
    assert wrong.headers["allow"] == "POST"
    assert worker.client.post("/health").headers["allow"] == "GET"
    assert worker.client.head("/health").status_code == 200


def test_a_surface_that_the_model_does_not_serve(worker: LiveWorker) -> None:
    body = {"state": "a", "questions": {"q": {"type": "set", "instructions": "?", "criteria": {"a": None}}}}
    response = worker.post("/v1/systemone", body)
    assert response.status_code == 422
    assert response.json()["error"]["code"] == "unsupported_surface"


def test_meta_and_timing(worker: LiveWorker) -> None:
    plain, told = (worker.post("/v1/classify", {"input": "abc", "options": {"return_meta": meta}}) for meta in (False, True))
    assert "meta" not in plain.json()
    meta = told.json()["meta"]
    assert meta.keys() >= {"revision", "model_sha256", "numerics", "engine", "accelerator", "device", "queue_ms", "compute_ms"}
    assert (meta["revision"], meta["device"], meta["max_num_seqs"]) == (None, "cpu", None)
    spent = phases(plain)
    assert list(spent) == PHASES
    assert sum(spent[name] for name in PHASES[:-1]) <= spent["total"] + 0.001 * len(PHASES)
    assert worker.post(EMBEDDINGS, {"input": "a"}).json()["meta"] == {
        "representation": {"model_sha256": "0" * 64, "layer": 1, "dimension": 2, "normalized": False}
    }


def test_request_ids(worker: LiveWorker) -> None:
    answers = [worker.post(EMBEDDINGS, {"input": "a"}, headers={"x-request-id": given}) for given in ("mine-1", "b\tad", "x" * 200)]
    ids = [answer.headers["x-request-id"] for answer in answers]
    assert ids[0] == "mine-1"
    assert all(len(each) == 32 for each in ids[1:])
    assert [answer.headers["x-typesafe-request-id"] for answer in answers] == ids


def test_keys() -> None:
    with live_worker({"m": ArithmeticModel()}, api_key=("one", "two")) as worker:
        for path in ("/health", "/health/live", "/metrics"):
            assert worker.client.get(path).status_code == 200
        for headers in ({}, {"authorization": "Bearer three"}, {"authorization": "Basic one"}):
            response = worker.post(EMBEDDINGS, {"input": "a"}, headers=headers)
            assert error(response) == (401, "unauthorized")
            assert response.headers["www-authenticate"] == "Bearer"
            assert list(phases(response)) == PHASES
            assert worker.client.get("/v1/models", headers=headers).status_code == 401
            assert worker.post("/v1/systemone", {}, headers=headers).json()["detail"]["error_type"] == "authentication_error"
        for key in ("one", "two"):
            assert worker.post(EMBEDDINGS, {"input": "a"}, headers={"authorization": f"bearer {key}"}).status_code == 200
