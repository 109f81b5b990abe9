"""A server from outside: what it says, how long it takes, and when it says nothing."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from headway.doctor.collect.bounded_answer import ANSWER_BYTES, ask
from headway.doctor.collect.endpoint import (
    ask_health,
    client_for,
    client_times,
    others,
    sample_requests,
    server_times,
    timed_request,
)
from headway.doctor.collect.transcript import Transcript
from headway.errors import DoctorError
from tests.doctor.collect.web import Answer, Handler, answering

MODELS = (200, json.dumps({"data": [{"id": f"m{k}", "permission": [{"x": "y" * 800}]} for k in range(6)]}))


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    with client_for(None, timeout=0.4) as made:
        yield made


def stream(handler: Handler) -> None:
    usage = '{"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 3}}'
    handler.pieces('data: {"a": 1}\n\n', 'data: {"a": 2}\n\n', f"data: {usage}\n\n", "data: [DONE]\n\n")


def test_health_and_many_models(client: httpx.Client) -> None:
    """A list of models is longer than what is kept of a health body."""
    with answering({"/health": (200, ""), "/v1/models": MODELS}) as url:
        found = ask_health(client, url, said := Transcript())
    assert found == {"url": url, "health": {"status": 200, "body": ""}, "models": [f"m{k}" for k in range(6)]}
    assert said.lines == ['"GET /health HTTP/1.1" 200', '"GET /v1/models HTTP/1.1" 200']


@pytest.mark.parametrize("body", ["not json", "[]", '{"data": 7}', '{"data": [{}]}', "[" * 100_000])
def test_models_that_are_none(client: httpx.Client, body: str) -> None:
    with answering({"/health": (200, ""), "/v1/models": (200, body)}) as url:
        assert ask_health(client, url, Transcript())["models"] in (None, [])


def test_a_refused_key_is_in_the_transcript(client: httpx.Client) -> None:
    with answering({"/health": (200, ""), "/v1/models": (401, '{"error": "Unauthorized"}')}) as url:
        assert ask_health(client, url, said := Transcript())["models"] is None
    assert any("Error code: 401" in line and "Unauthorized" in line for line in said.lines)


def test_a_server_that_says_nothing_is_asked_once(client: httpx.Client) -> None:
    asked: list[str] = []
    stop = threading.Event()

    def silent(handler: Handler) -> None:
        asked.append(handler.path)
        stop.wait(5)

    with answering({"/health": silent, "/v1/models": silent}) as url:
        found = ask_health(client, url, said := Transcript())
        stop.set()
    assert found["health"] is None
    assert asked == ["/health"]
    assert "no answer came in time" in said.lines[0]


def test_a_timed_request(client: httpx.Client) -> None:
    with answering({"/v1/completions": stream}) as url:
        row = timed_request(client, url, "m", Transcript(), None)
    assert row is not None
    assert (row["prompt_tok"], row["out_tok"], row["events"]) == (9, 3, 4)
    assert 0 < row["ttft_cli_s"] <= row["total_cli_s"]


def test_a_server_of_chat_only(client: httpx.Client) -> None:
    with answering({"/v1/chat/completions": stream}) as url:
        row = timed_request(client, url, "m", said := Transcript(), None)
    assert row is not None
    assert said.lines == []


@pytest.mark.parametrize(
    "answers", [{}, {"/v1/completions": (400, "The model does not support Completions API"), "/v1/chat/completions": (400, "The model does not support Chat Completions API")}]
)
def test_a_server_that_generates_nothing_is_no_error(client: httpx.Client, answers: dict[str, Answer]) -> None:
    with answering(answers) as url:
        assert timed_request(client, url, "m", said := Transcript(), None) is None
    assert said.lines == ["the server has no route that generates text; no request was timed"]


def test_a_refusal_is_in_the_transcript(client: httpx.Client) -> None:
    with answering({"/v1/completions": (503, '{"error": "engine dead"}')}) as url:
        assert timed_request(client, url, "m", said := Transcript(), None) is None
    assert said.lines == ['"POST /v1/completions HTTP/1.1" 503', 'Error code: 503 - {"error": "engine dead"}']


def test_a_request_without_an_answer(client: httpx.Client) -> None:
    stop = threading.Event()
    with answering({"/v1/completions": lambda handler: bool(stop.wait(5)) and None}) as url:
        assert timed_request(client, url, "m", said := Transcript(), None) is None
        stop.set()
    assert said.lines == ["the doctor's own request of 16 tokens got no token within 0.4 s"]


def test_an_answer_that_drips_has_an_end(client: httpx.Client) -> None:
    stop = threading.Event()
    with answering({"/v1/completions": lambda handler: handler.pieces(*["data: {}\n\n"] * 200, pause=lambda: stop.wait(0.05) and None)}) as url:
        assert timed_request(client, url, "m", said := Transcript(), None) is None
        stop.set()
    assert "was not complete after 0.4 s" in said.lines[0]


def test_an_answer_without_an_end_is_cut(client: httpx.Client) -> None:
    piece = "x" * (1 << 20)
    with answering({"/metrics": lambda handler: handler.pieces(*[piece] * 64)}) as url:
        assert len(ask(client, f"{url}/metrics", seconds=20).text) == ANSWER_BYTES


def test_times_at_the_client() -> None:
    row = client_times([0.5, 0.6, 0.9], [1, 1, 2])
    assert row == {"ttft_cli_s": 0.5, "total_cli_s": 0.9, "itl_cli_ms": 133.333, "pieces": 3, "events": 4}
    assert client_times([0.5], [5])["itl_cli_ms"] == 0.0


def test_times_at_the_server_are_what_was_added() -> None:
    before = {"time_to_first_token_seconds": (10.0, 5.0), "request_queue_time_seconds": (1.0, 5.0), "request_prefill_time_seconds": (2.0, 5.0)}
    after = {
        "time_to_first_token_seconds": (10.4, 6.0),
        "request_queue_time_seconds": (1.0, 5.0),
        "request_prefill_time_seconds": (2.5, 7.0),  # somebody else's ended, too
        "inter_token_latency_seconds": (0.3, 30.0),
    }
    assert server_times(before, after) == {"ttft_srv_s": 0.4, "itl_srv_ms": 10.0}


def test_other_peoples_requests_are_what_is_left() -> None:
    before, after = {"time_to_first_token_seconds": (10.0, 5.0)}, {"time_to_first_token_seconds": (14.0, 9.0)}
    own = [{"ttft_srv_s": 0.5}, {"ttft_srv_s": 0.5}]
    assert others(before, after, own) == {"id": "mean of 2 other requests", "ttft_srv_s": 1.5}
    assert others(before, {"time_to_first_token_seconds": (11.0, 7.0)}, own) is None
    mixed = [{"ttft_srv_s": 0.5}, {"ttft_cli_s": 0.7}]  # during the second another request ended
    assert others(before, after, mixed) == {"id": "mean of 2 other requests", "ttft_srv_s": 1.4}


def test_samples_keep_what_decides_about_the_cache(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text('{"model": "m", "messages": [{"role": "user", "content": "hi"}], "user": "anna", "temperature": 1}\n')
    assert sample_requests(path) == [{"id": "sample 1", "model": "m", "messages": [{"role": "user", "content": "hi"}]}]


@pytest.mark.parametrize("text", ["[1]", "no", "{}\n" + "[" * 100_000])
def test_a_file_that_is_no_sample(tmp_path: Path, text: str) -> None:
    (tmp_path / "r").write_text(text)
    with pytest.raises(DoctorError) as caught:
        sample_requests(tmp_path / "r")
    assert caught.value.reason == "sample_unreadable"
