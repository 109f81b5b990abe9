"""Backends that are killed, stuck or left, behind a real router process."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.router_process import PUBLIC, RunningRouter, backend, started_router
from tests.router.upstream.scripted_backend import Asked, answers, chunk, never, streams
from tests.shim.environments import ROOT

pytestmark = pytest.mark.e2e
BODY = {"messages": [{"role": "user", "content": "hi"}]}


@contextmanager
def backend_process(folder: Path, name: str, kind: str = "slow", port: int = 0) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A backend of tests/e2e in a process of its own, and its endpoint; `port` for one that comes back where it was."""
    file = folder / name
    file.unlink(missing_ok=True)
    process = subprocess.Popen([sys.executable, "-m", f"tests.e2e.{kind}_backend", str(file), *([str(port)] if port else [])], cwd=ROOT)
    try:
        end = time.monotonic() + 20
        while not file.exists() or not file.read_text():
            assert time.monotonic() < end
            time.sleep(0.02)
        yield process, f"127.0.0.1:{file.read_text()}"
    finally:
        process.kill()
        process.wait(10)


def document(**models: tuple[list[str], dict[str, Any]]) -> dict[str, Any]:
    """Models by name: their endpoints, and further fields."""
    found = []
    for name, (endpoints, fields) in models.items():
        refs = [{"name": f"b{at}", "endpoint": endpoint} for at, endpoint in enumerate(endpoints)]
        found.append({"name": name, "backend_refs": refs, **fields})
    return {"version": "v0.3", "listeners": [{"name": "public", "address": "127.0.0.1", "port": PUBLIC}], "providers": {"models": found}}


async def _posts(router: RunningRouter, model: str, count: int) -> list[httpx.Response]:
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(trust_env=False, timeout=30, limits=limits) as client:
        requests = (client.post(f"{router.url}/v1/chat/completions", json={"model": model, **BODY}) for _ in range(count))
        return await asyncio.gather(*requests)


def test_a_backend_killed_inside_a_stream_ends_it_with_an_error(tmp_path: Path) -> None:
    with backend_process(tmp_path, "a") as (process, endpoint), started_router(tmp_path / "r", document(m=([endpoint], {}))) as router:
        events: list[str] = []
        with router.client.stream("POST", f"{router.url}/v1/chat/completions", json={"model": "m", "stream": True, **BODY}) as response:
            assert response.status_code == 200
            for line in response.iter_lines():
                if line.startswith("data: "):
                    events.append(line.removeprefix("data: "))
                if len(events) == 3:
                    process.kill()
        told = json.loads(events[-1])["error"]
        assert told["reason"] == "upstream_failed"
        assert '"m/b0" broke off' in told["message"]
        assert endpoint not in events[-1]
        assert all("choices" in json.loads(event) for event in events[:-1])
        assert router.metric("llm_model_inflight_requests{model=\"m\"}") == 0


def test_no_request_is_lost_with_a_backend_that_dies(tmp_path: Path) -> None:
    with (
        backend_process(tmp_path, "a") as (process, first),
        backend(answers()) as second,
        started_router(tmp_path / "r", document(m=([first, second.endpoint], {}))) as router,
    ):

        async def work() -> list[httpx.Response]:
            asking = asyncio.ensure_future(_posts(router, "m", 40))
            while len(second.asked) < 20 or await asyncio.to_thread(router.metric, 'llm_model_inflight_requests{model="m"}') != 20:
                await asyncio.sleep(0.05)
            process.kill()
            return [*await asking, *await _posts(router, "m", 10)]

        found = asyncio.run(work())
        assert [each.status_code for each in found] == [200] * 50
        assert all(each.json()["choices"] for each in found)
        assert router.metric('vsr_upstream_attempts_total{backend="m/b0",model="m",outcome="closed"}') == 20
        assert len(second.asked) == 50


def test_a_stuck_backend_harms_nobody_else(tmp_path: Path) -> None:
    hasty = {"reliability": {"first_byte_timeout": "200ms"}}
    with backend(never) as stuck, backend(answers()) as well:
        models = document(stuck=([stuck.endpoint], {}), hasty=([stuck.endpoint], hasty), good=([well.endpoint], {}))
        with started_router(tmp_path / "r", models) as router:

            async def work() -> list[httpx.Response]:
                waiting = asyncio.ensure_future(_posts(router, "stuck", 100))
                while len(stuck.asked) < 100:
                    await asyncio.sleep(0.02)
                good = await _posts(router, "good", 100)
                assert stuck.gone == 0  # all of them were answered while the others waited
                waiting.cancel()
                await asyncio.gather(waiting, return_exceptions=True)
                return good

            assert [each.status_code for each in asyncio.run(work())] == [200] * 100
            router.until(lambda: stuck.gone == 100)
            late = router.chat("hi", model="hasty")
            assert (late.status_code, late.json()["error"]["reason"]) == (504, "upstream_timeout")
            assert '"hasty/b0"' in late.json()["error"]["message"]
            assert stuck.endpoint not in late.text


def test_a_client_that_leaves_ends_the_work_of_its_backend(tmp_path: Path) -> None:
    async def script(asked: Asked, writer: asyncio.StreamWriter) -> None:
        await (streams(chunk("a"), stall=True) if asked.body.get("stream") else never)(asked, writer)

    with backend(script) as found, started_router(tmp_path / "r", document(m=([found.endpoint], {}))) as router:
        with router.client.stream("POST", f"{router.url}/v1/chat/completions", json={"model": "m", "stream": True, **BODY}) as response:
            next(response.iter_lines())
        router.until(lambda: found.gone == 1)
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{router.url}/v1/chat/completions", json={"model": "m", **BODY}, timeout=0.5, trust_env=False)
        router.until(lambda: found.gone == 2)
        router.until(lambda: router.metric('llm_model_inflight_requests{model="m"}') == 0)


def test_when_all_replicas_are_down_it_is_said_and_one_that_comes_back_answers(tmp_path: Path) -> None:
    """Killed together, with requests inside; then one of them starts again on its port."""
    with backend_process(tmp_path, "a") as (first, one), backend_process(tmp_path, "b") as (second, two):
        ejecting = {"reliability": {"consecutive_5xx": 2, "base_ejection_time": "60s"}}
        with started_router(tmp_path / "r", document(m=([one, two], ejecting))) as router:

            async def work() -> list[httpx.Response]:
                inside = asyncio.ensure_future(_posts(router, "m", 10))
                while await asyncio.to_thread(router.metric, 'llm_model_inflight_requests{model="m"}') != 10:
                    await asyncio.sleep(0.05)
                first.kill()
                second.kill()
                return [*await inside, *await _posts(router, "m", 10)]

            for answer in asyncio.run(work()):
                told = answer.json()["error"]
                assert (answer.status_code, told["reason"]) == (502, "upstream_failed")
                assert told["message"].startswith('backend "m/b')
                assert one not in answer.text
                assert two not in answer.text
            streamed = router.chat("hi", model="m", stream=True)
            assert (streamed.status_code, streamed.headers["content-type"]) == (502, "application/json")
            assert router.get("/ready").status_code == 200  # the router itself is well
            with backend_process(tmp_path, "a", "echo", int(one.rpartition(":")[2])):
                found = asyncio.run(_posts(router, "m", 20))
                assert [answer.status_code for answer in found] == [200] * 20
                assert {answer.json()["choices"][0]["message"]["content"] for answer in found} == {"hi"}
            assert router.metric('llm_model_inflight_requests{model="m"}') == 0


def test_a_backend_never_has_more_requests_than_its_places(tmp_path: Path) -> None:
    """30 at once for 4 places and 16 in the queue: 10 are told so at once, nobody else notices."""
    bounds = {"reliability": {"max_in_flight": 4, "max_waiting": 16}}
    with backend_process(tmp_path, "a", "echo") as (_, endpoint), started_router(tmp_path / "r", document(m=([endpoint], bounds))) as router:

        async def work() -> list[httpx.Response]:
            limits = httpx.Limits(max_connections=None)
            body = {"model": "m", "messages": [{"role": "user", "content": "slow words"}]}
            async with httpx.AsyncClient(trust_env=False, timeout=30, limits=limits) as client:
                return await asyncio.gather(*(client.post(f"{router.url}/v1/chat/completions", json=body) for _ in range(30)))

        found = asyncio.run(work())
        refused = [answer for answer in found if answer.status_code != 200]
        assert len(refused) == 10
        assert {(answer.status_code, answer.json()["error"]["reason"], answer.headers["retry-after"]) for answer in refused} == {(503, "upstream_overloaded", "1")}
        assert httpx.get(f"http://{endpoint}/most", trust_env=False).json() == {"most": 4}
        assert router.metric('vsr_upstream_attempts_total{backend="m/b0",model="m",outcome="queue_full"}') == 10
        assert router.metric('vsr_upstream_waiting_requests{backend="m/b0",model="m"}') == 0
        assert router.chat("hi", model="m").status_code == 200
