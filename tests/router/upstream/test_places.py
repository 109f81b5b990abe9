"""Places at a backend: who gets one, who waits, who is sent away."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from yarl import URL

from headway.router.upstream.backend import Backend
from headway.router.upstream.exchange import TryError
from headway.router.upstream.health import BackendState, BackendStates
from headway.router.upstream.places import leave_place, take_place
from headway.router.upstream.pool import Pool
from tests.router.listener.live_front import LiveFront, run
from tests.router.upstream.harness import Sender, document, model
from tests.router.upstream.harness import run as run_sender
from tests.router.upstream.scripted_backend import Asked, ScriptedBackend, answers, never

FOREVER = float("inf")


def test_places_are_given_in_the_order_of_arrival() -> None:
    async def work() -> None:
        state, order = BackendState(), []

        async def want(name: str) -> None:
            await take_place(state, 2, 10, FOREVER)
            order.append(name)

        tasks = [asyncio.create_task(want(name)) for name in "abcde"]
        for had in ("ab", "abc", "abcd", "abcde"):
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert ("".join(order), state.in_flight) == (had, 2)
            leave_place(state)
        await asyncio.gather(*tasks)
        leave_place(state)
        assert (state.in_flight, len(state.waiting)) == (0, 0)

    run(work)


def test_the_queue_is_bounded_and_so_is_the_wait() -> None:
    async def work() -> None:
        state = BackendState()
        await take_place(state, 1, 1, FOREVER)
        waiting = asyncio.create_task(take_place(state, 1, 1, FOREVER))
        await asyncio.sleep(0)
        with pytest.raises(TryError) as full:
            await take_place(state, 1, 1, FOREVER)
        assert (full.value.outcome, full.value.sent, full.value.busy) == ("queue_full", False, True)
        with pytest.raises(TryError) as late:
            await take_place(state, 1, 2, 0.001)
        assert late.value.outcome == "queue_timeout"
        leave_place(state)
        await waiting
        assert (state.in_flight, len(state.waiting)) == (1, 0)

    run(work)


def test_whoever_leaves_the_queue_takes_no_place_with_them() -> None:
    async def work() -> None:
        state = BackendState()
        await take_place(state, 1, 9, FOREVER)
        gone, late, stays = (asyncio.create_task(take_place(state, 1, 9, FOREVER)) for _ in range(3))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.sleep(0)
        leave_place(state)  # given to `late`, which is cancelled before it knows
        late.cancel()
        await stays
        found = await asyncio.gather(gone, late, return_exceptions=True)
        assert [type(each) for each in found] == [asyncio.CancelledError] * 2
        assert (state.in_flight, len(state.waiting)) == (1, 0)

    run(work)


def test_a_reload_that_allows_more_is_good_for_those_who_wait() -> None:
    async def work() -> None:
        state = BackendState()
        await take_place(state, 1, 9, FOREVER)
        waiting = [asyncio.create_task(take_place(state, 1, 9, FOREVER)) for _ in range(2)]
        await asyncio.sleep(0)
        await take_place(state, 4, 9, FOREVER)
        await asyncio.gather(*waiting)
        assert state.in_flight == 4

    run(work)


def test_a_pool_passes_over_a_full_backend_and_then_takes_the_shortest_queue() -> None:
    backends = [Backend(f"m/b{at}", "m", "http://h", URL("http://h")) for at in range(2)]
    pool = Pool(backends, BackendStates())
    first, second = pool.states
    first.most = second.most = 1
    first.in_flight = 1
    assert {picked[0].alias for picked in (pool.pick(), pool.pick()) if picked} == {"m/b1"}
    second.in_flight = 2
    assert {picked[0].alias for picked in (pool.pick(), pool.pick()) if picked} == {"m/b0"}


def gated(gate: asyncio.Event) -> Any:
    reply = answers()

    async def script(asked: Asked, writer: asyncio.StreamWriter) -> None:
        await gate.wait()
        await reply(asked, writer)

    return script


def test_requests_beyond_the_bound_wait_and_those_beyond_the_queue_are_told(tmp_path: Path) -> None:
    bounds = {"reliability": {"max_in_flight": 3, "max_waiting": 2}}

    async def work() -> None:
        gate = asyncio.Event()
        async with ScriptedBackend([gated(gate)]) as backend, LiveFront(backend, tmp_path, model=bounds) as front:
            running = [asyncio.create_task(front.chat()) for _ in range(8)]
            async with asyncio.timeout(10):
                while sum(task.done() for task in running) < 3 or len(backend.asked) < 3:
                    await asyncio.sleep(0.005)
            assert (len(backend.asked), backend.connections) == (3, 3)
            assert front.counted("vsr_upstream_waiting_requests", "m", "m/1") == 2
            gate.set()
            found = await asyncio.gather(*running)
            assert sorted(answer.status_code for answer in found) == [200] * 5 + [503] * 3
            refused = next(answer for answer in found if answer.status_code == 503)
            assert (refused.json()["error"]["reason"], refused.headers["retry-after"]) == ("upstream_overloaded", "1")
            assert '"m/1" has as many requests under way' in refused.json()["error"]["message"]
            assert backend.connections <= 3
            assert front.counted("vsr_upstream_attempts", "m", "m/1", "queue_full") == 3
            assert front.counted("vsr_upstream_waiting_requests", "m", "m/1") == 0
            assert front.counted("llm_model_inflight_requests", "m") == 0

    run(work)


def test_a_busy_backend_is_not_a_sick_one_and_gives_way_to_another() -> None:
    async def work() -> None:
        async with ScriptedBackend([never]) as slow, ScriptedBackend([answers()]) as free:
            settings = {"max_in_flight": 1, "max_waiting": 0, "consecutive_5xx": 1, "max_wait": "10ms"}
            sender = Sender(document([model("m", slow.endpoint, free.endpoint, reliability=settings)]))
            hanging = asyncio.create_task(sender.send("m"))
            async with asyncio.timeout(10):
                while not slow.asked:
                    await asyncio.sleep(0.005)
            for _ in range(3):
                assert (await sender.send("m"))[0].status == 200
            assert len(free.asked) == 3
            state, _ = sender.upstreams.models["m"].pool.states
            assert (state.failures_in_row, state.ejected_until) == (0, 0.0)
            hanging.cancel()
            await asyncio.gather(hanging, return_exceptions=True)
            assert state.in_flight == 0
            await sender.close()

    run_sender(work)


def test_the_wait_for_a_place_ends(tmp_path: Path) -> None:
    bounds = {"reliability": {"max_in_flight": 1, "max_wait": "20ms"}}

    async def work() -> None:
        async with ScriptedBackend([never]) as backend, LiveFront(backend, tmp_path, model=bounds) as front:
            hanging = asyncio.create_task(front.chat())
            async with asyncio.timeout(10):
                while not backend.asked:
                    await asyncio.sleep(0.005)
            late = await front.chat()
            assert (late.status_code, late.json()["error"]["reason"]) == (503, "upstream_overloaded")
            bounded = await front.chat({"x-request-timeout-ms": "5"})
            assert (bounded.status_code, bounded.json()["error"]["reason"]) == (504, "deadline_exceeded")
            [state] = front.generations.current.upstreams.models["m"].pool.states  # type: ignore[attr-defined]
            assert (state.failures_in_row, state.in_flight, len(state.waiting)) == (0, 1, 0)
            hanging.cancel()
            await asyncio.gather(hanging, return_exceptions=True)

    run(work)
