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
def slow_process(folder: Path, name: str) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A backend in a process of its own, and its endpoint."""
    file = folder / name
    process = subprocess.Popen([sys.executable, "-m", "tests.e2e.slow_backend", str(file)], cwd=ROOT)
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
    with slow_process(tmp_path, "a") as (process, endpoint), started_router(tmp_path / "r", document(m=([endpoint], {}))) as router:
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
        slow_process(tmp_path, "a") as (process, first),
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
