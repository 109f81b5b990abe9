"""/health tells whether the engine moves, whatever else the process does."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import httpx

from headway.cli.server_client import ServerClient
from headway.cli.wait import wait_until_ready
from headway.server.progress import ProgressWatch
from tests.cases.scripted_model import scripted_tokenizer
from tests.server.api import COMPLETIONS, Api, ok
from tests.server.process import ServerProcess, server_process
from tests.server.scripted_engine import Status

Make = Callable[..., Api]


def get(server: ServerProcess, path: str) -> httpx.Response:
    return httpx.get(server.url + path, trust_env=False, timeout=10)


def until_ready(server: ServerProcess) -> None:
    server.read_note()
    assert wait_until_ready(ServerClient(server.url), 20, lambda state: None).state == "ok"


def ask(server: ServerProcess, prompt: str, **kwargs: object) -> None:
    def call() -> None:
        body = {"prompt": prompt, "max_tokens": 5, "temperature": 0}
        try:
            httpx.post(server.url + COMPLETIONS, json=body, trust_env=False, timeout=60)
        except httpx.HTTPError:  # the server ends first
            return

    threading.Thread(target=call, daemon=True).start()


def until(server: ServerProcess, condition: Callable[[httpx.Response], bool]) -> httpx.Response:
    deadline = time.monotonic() + 20
    while not condition(found := get(server, "/health?verbose=1")):
        assert time.monotonic() < deadline, found.text
        time.sleep(0.02)
    return found


def test_counters_are_in_headers_and_on_request_in_the_body(api: Api) -> None:
    api.engine.status = Status("ready", steps=12, requests=3, running=2, waiting=1)
    response = api.get("/health")
    assert ok(response) == {"status": "ok"}
    assert {k: v for k, v in response.headers.items() if k.startswith("x-engine") and "still" not in k} == {
        "x-engine-steps": "12",
        "x-engine-running": "2",
        "x-engine-waiting": "1",
    }
    body = ok(api.get("/health?verbose=1"))
    assert body.pop("still_seconds") >= 0
    assert body == {"status": "ok", "steps": 12, "running": 2, "waiting": 1}


def test_a_stalled_engine_is_not_healthy(make_api: Make) -> None:
    api = make_api(health_stall_seconds=30)
    now = 0.0
    api.app.state.headway.progress = ProgressWatch(30, lambda: now)
    api.engine.status = Status("ready", steps=7, requests=2, running=1, waiting=1)
    assert api.get("/health").status_code == 200
    now = 31.0
    response = api.get("/health")
    assert response.status_code == 503
    body = response.json()
    assert (body["status"], body["reason"], body["steps"]) == ("stalled", "engine_stalled", 7)
    assert body["message"] == "no step has ended for 31 s while 2 request(s) wait (--health-stall-seconds 30)"
    assert api.post("/ping", {}).status_code == 503
    api.engine.status = Status("ready", steps=8, requests=2)
    assert api.get("/health").status_code == 200


def test_a_blocked_engine_thread_turns_health_to_503(tmp_path: Path) -> None:
    """The thread that computes hangs in a pass; the server still answers, and says so."""
    with server_process(tmp_path, "core", "--health-stall-seconds", "0.3") as server:
        until_ready(server)
        first = get(server, "/health?verbose=1").json()
        ask(server, "fine")
        moved = until(server, lambda r: r.json()["steps"] >= first["steps"] + 5)
        assert moved.status_code == 200
        time.sleep(0.4)
        assert get(server, "/health").json() == {"status": "ok"}  # idle for longer than the bound
        ask(server, "hang")
        stuck = until(server, lambda r: r.status_code == 503)
        assert stuck.json()["reason"] == "engine_stalled"
        assert (stuck.json()["running"], stuck.json()["waiting"]) == (1, 0)
        ask(server, "fine")
        server.until_logged("has not ended a step")
        steps = {get(server, "/health?verbose=1").json()["steps"] for _ in range(20)}
        assert len(steps) == 1
        assert get(server, "/metrics").status_code == 200
        assert ServerClient(server.url).model() == "smollm2-135m-instruct"
        server.process.terminate()
        assert server.ended() == 0


def test_tokenizing_a_huge_text_lets_others_run() -> None:
    """/health is answered on the event loop while a worker thread tokenizes: the tokenizer must not keep Python's lock."""
    tokenizer = scripted_tokenizer()
    turns = 0
    done = threading.Event()

    def others() -> None:
        nonlocal turns
        while not done.wait(0.001):
            turns += 1

    thread = threading.Thread(target=others)
    thread.start()
    before = turns
    ids = tokenizer.encode("The quick brown fox. " * 100_000)
    during = turns - before
    done.set()
    thread.join()
    assert len(ids) == 2_100_000
    assert during > 20  # none or one with the lock held


def test_a_model_without_a_chat_template_is_announced(tmp_path: Path) -> None:
    with server_process(tmp_path, "plain") as server:
        until_ready(server)
        server.until_logged("this model has no chat template")
        assert "--chat-template FILE" in server.log
    with server_process(tmp_path, "ready") as server:
        until_ready(server)
        assert "no chat template" not in server.log
