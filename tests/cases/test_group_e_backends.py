"""E13: backends that fail in every way, behind a real router: what the client gets, how often they were asked, and what the trace and metrics say."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tests.cases.router_case import document
from tests.e2e.router_process import RunningRouter, backend, started_router
from tests.router.upstream.harness import free_port
from tests.router.upstream.scripted_backend import Script, ScriptedBackend, answers, chunk, never, streams, trickles

SECRET = "sk-of-the-backend"
DEAD_CLIENTS, CLIENTS = 50, 200


@dataclass(frozen=True)
class Row:
    """`scripts` None = nobody listens. `asked` counts requests that reached the backend, `outcomes` is the trace."""

    scripts: Sequence[Script] | None
    reliability: dict[str, Any]
    status: int
    outcomes: tuple[str, ...]
    asked: int = 1
    reason: str | None = None


TRIES = {"retry_count": 2}
ROWS = {
    "never": Row([never], {**TRIES, "first_byte_timeout": "300ms"}, 504, ("first_byte_timeout",), reason="upstream_timeout"),
    "refuses": Row(None, {**TRIES, "connect_timeout": "2s"}, 502, ("connect_failed",) * 3, asked=0, reason="upstream_failed"),
    "busy": Row([answers(b"{}", 503), answers(b"{}", 503), answers()], TRIES, 200, ("status_503", "status_503", "ok"), asked=3),
    "busier": Row([answers(b"{}", 503)], TRIES, 503, ("status_503",) * 3, asked=3),
    "limited": Row([answers(b"{}", 429, headers={"retry-after": "0.1"}), answers()], TRIES, 200, ("status_429", "ok"), asked=2),
    "wrong": Row([answers({"error": {"message": "no such field"}}, 400)], TRIES, 400, ("status_400",)),
    "blocked": Row([answers({"error": {"message": "unsafe"}}, 403)], TRIES, 403, ("status_403",)),
    "garbled": Row([answers(b"<html>")], TRIES, 502, ("ok", "bad_body"), reason="upstream_failed"),
    "slow": Row([trickles], {**TRIES, "total_timeout": "600ms"}, 504, (), reason="upstream_timeout"),
}
STALLS = [streams(chunk("a"), chunk("b"), stall=True)]
STOPS = [streams(chunk("a"), chunk("b"))]


@pytest.fixture(scope="module")
def backends() -> Iterator[dict[str, ScriptedBackend]]:
    rows: dict[str, Sequence[Script]] = {name: row.scripts for name, row in ROWS.items() if row.scripts is not None}
    rows |= {"stalls": STALLS, "stops": STOPS, "good": [answers()]}
    with ExitStack() as stack:
        yield {name: stack.enter_context(backend(*scripts)) for name, scripts in rows.items()}


@pytest.fixture(scope="module")
def router(backends: dict[str, ScriptedBackend], tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRouter]:
    def model(endpoint: str, **reliability: Any) -> dict[str, Any]:
        return {"backend_refs": [{"name": "b0", "endpoint": endpoint, "api_key": SECRET}], "reliability": reliability}

    models: dict[str, Any] = {"good": model(backends["good"].endpoint)}
    for name, row in ROWS.items():
        models[name] = model(backends[name].endpoint if row.scripts is not None else f"127.0.0.1:{free_port()}", **row.reliability)
    for name in ("stalls", "stops"):
        models[name] = model(backends[name].endpoint, retry_count=2, idle_timeout="300ms")
    models["stuck"] = model(backends["never"].endpoint, first_byte_timeout="20s")
    refused = {"name": "b0", "endpoint": f"127.0.0.1:{free_port()}"}
    models["half"] = {"backend_refs": [refused, {"name": "b1", "endpoint": backends["good"].endpoint}]}
    with started_router(tmp_path_factory.mktemp("backends"), document(models, {})) as found:
        yield found


def traced(router: RunningRouter, model: str, **more: Any) -> tuple[httpx.Response, list[str]]:
    answer = router.chat("hi", model=model, headers={"x-vsr-debug": "true"}, **more)
    return answer, json.loads(answer.headers["x-vsr-trace"])["attempts"]


@pytest.mark.parametrize("name", ROWS)
def test_e13_a_backend_that_fails(router: RunningRouter, backends: dict[str, ScriptedBackend], name: str) -> None:
    row = ROWS[name]
    before = len(backends[name].asked) if name in backends else 0
    answer, attempts = traced(router, name)
    assert answer.status_code == row.status, answer.text
    if row.outcomes:
        assert attempts == [f"{name}/b0: {outcome}" for outcome in row.outcomes]
    for outcome in row.outcomes:
        assert router.metric(f'vsr_upstream_attempts_total{{backend="{name}/b0",model="{name}",outcome="{outcome}"}}') >= 1
    if name in backends:
        assert len(backends[name].asked) - before == row.asked
        assert backends[name].endpoint not in answer.text
    if row.reason is not None:
        told = answer.json()["error"]
        assert told["reason"] == row.reason
        assert f'"{name}/b0"' in told["message"] or name == "garbled"
    assert SECRET not in answer.text
    assert "127.0.0.1" not in answer.text


@pytest.mark.parametrize("name", ["stalls", "stops"])
def test_e13_a_stream_that_ends_too_early_gets_an_error_event_and_is_never_asked_again(
    router: RunningRouter, backends: dict[str, ScriptedBackend], name: str
) -> None:
    answer = router.chat("hi", model=name, stream=True)
    assert answer.status_code == 200
    events = [line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith("data: ")]
    parts = [json.loads(event) for event in events if event != "[DONE]"]
    assert [part["choices"][0]["delta"]["content"] for part in parts[:2]] == ["a", "b"]
    assert parts[2]["error"]["reason"] == ("upstream_timeout" if name == "stalls" else "upstream_failed")
    assert backends[name].endpoint not in answer.text
    assert len(backends[name].asked) == 1


def test_e13_a_dead_backend_beside_a_healthy_one_is_not_noticed(router: RunningRouter) -> None:
    found = [traced(router, "half") for _ in range(6)]
    assert {answer.status_code for answer, _ in found} == {200}
    assert any(attempts[0] == "half/b0: connect_failed" for _, attempts in found)
    assert {attempts[-1] for _, attempts in found} == {"half/b1: ok"}


@pytest.mark.long
def test_e13_two_hundred_clients_while_others_are_stuck(router: RunningRouter, backends: dict[str, ScriptedBackend]) -> None:
    async def work() -> tuple[list[httpx.Response], int]:
        async with httpx.AsyncClient(trust_env=False, timeout=30, limits=httpx.Limits(max_connections=None)) as client:

            def post(model: str) -> asyncio.Task[httpx.Response]:
                body = {"model": model, "messages": [{"role": "user", "content": "hi"}]}
                return asyncio.create_task(client.post(f"{router.url}/v1/chat/completions", json=body))

            held = len(backends["never"].asked)
            stuck = [post("stuck") for _ in range(DEAD_CLIENTS)]
            while len(backends["never"].asked) < held + DEAD_CLIENTS:
                await asyncio.sleep(0.02)
            answered = await asyncio.gather(*(post("good") for _ in range(CLIENTS)))
            waiting = sum(not task.done() for task in stuck)
            for task in stuck:
                task.cancel()
            await asyncio.gather(*stuck, return_exceptions=True)
            return answered, waiting

    answered, waiting = asyncio.run(work())
    assert [answer.status_code for answer in answered] == [200] * CLIENTS
    assert waiting == DEAD_CLIENTS  # all of them were answered while the others waited
    router.until(lambda: router.metric('llm_model_inflight_requests{model="stuck"}') == 0)
