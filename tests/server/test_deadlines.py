"""x-request-timeout-ms and --request-timeout: 504 with a stable reason, and an error event in streams."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from headway.engine.step_plan import StepPlan
from tests.cases.case_server import CaseServer, case_server
from tests.cases.scripted_model import ScriptedModel, scripted_engine, scripted_tokenizer
from tests.server.api import CHAT, COMPLETIONS, USER


def slow(plan: StepPlan) -> None:
    time.sleep(0.02)


@pytest.fixture(scope="module")
def model() -> ScriptedModel:
    made = ScriptedModel(scripted_tokenizer())
    made.say_bytes(b"x" * 450)
    made.before_pass = slow
    return made


@pytest.fixture(scope="module")
def server(model: ScriptedModel) -> Iterator[CaseServer]:
    with case_server(*scripted_engine(model), request_timeout=0.3) as running:
        yield running
        model.before_pass = lambda plan: None
        running.check_alive()


def ask(server: CaseServer, path: str, timeout_ms: str | None, **body: Any) -> httpx.Response:
    given = {"messages": USER} if path == CHAT else {"prompt": "Say"}
    headers = {} if timeout_ms is None else {"x-request-timeout-ms": timeout_ms}
    return server.client.post(path, json={**given, "max_tokens": 400, "temperature": 0, **body}, headers=headers)


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
@pytest.mark.parametrize("timeout_ms", ["200", None])
def test_an_answer_in_one_piece_becomes_504(server: CaseServer, path: str, timeout_ms: str | None) -> None:
    response = ask(server, path, timeout_ms)
    assert response.status_code == 504, response.text
    error = response.json()["error"]
    assert (error["reason"], error["code"]) == ("deadline_exceeded", 504)
    server.until_empty()


def test_a_stream_ends_with_an_error_event(server: CaseServer) -> None:
    response = ask(server, COMPLETIONS, "300", stream=True)
    assert response.status_code == 200
    events = [line.removeprefix("data: ") for line in response.text.split("\n\n") if line]
    assert events[-1] == "[DONE]"
    assert json.loads(events[-2])["error"]["reason"] == "deadline_exceeded"
    assert all("choices" in json.loads(event) for event in events[:-2])
    assert len(events) > 3
    server.until_empty()


def test_the_header_wins_over_the_servers_default(server: CaseServer) -> None:
    response = ask(server, COMPLETIONS, "20000", max_tokens=25)
    assert response.status_code == 200
    assert response.json()["usage"]["completion_tokens"] == 25


def test_beams_of_all_rounds_have_one_deadline(server: CaseServer) -> None:
    response = ask(server, COMPLETIONS, "200", use_beam_search=True, n=2, ignore_eos=True)
    assert response.status_code == 504
    server.until_empty()


@pytest.mark.parametrize("value", ["0", "-1", "1.5", "x", "", "9" * 30, "١"])
def test_other_values_are_refused(server: CaseServer, value: str) -> None:
    headers = {"x-request-timeout-ms": value.encode()}
    response = server.client.post(COMPLETIONS, json={"prompt": "Say", "max_tokens": 1}, headers=headers)
    assert response.status_code == 400
    assert response.json()["error"]["param"] == "x-request-timeout-ms"
