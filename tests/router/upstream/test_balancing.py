"""Which backend gets a request: weights, load, ejection, health."""

from __future__ import annotations

import asyncio
import time
from collections import Counter

import pytest
from yarl import URL

from headway.errors import DeadlineError
from headway.router.request.deadline import Deadline
from headway.router.upstream.backend import Backend
from headway.router.upstream.health import BackendStates, note_failure, note_success
from headway.router.upstream.pool import Pool
from tests.router.upstream.harness import Sender, document, model, run
from tests.router.upstream.scripted_backend import Asked, ScriptedBackend, answers, never


def backends(*weights: int) -> list[Backend]:
    return [Backend(f"m/b{at}", "m", "http://h", URL("http://h"), weight=weight) for at, weight in enumerate(weights)]


def picked(pool: Pool, times: int) -> list[str]:
    found = []
    for _ in range(times):
        choice = pool.pick()
        assert choice is not None
        found.append(choice[0].alias)
    return found


def test_round_robin_follows_the_weights_and_spreads_them() -> None:
    order = picked(Pool(backends(3, 1, 0), BackendStates()), 8)
    assert Counter(order) == {"m/b0": 6, "m/b1": 2}
    assert order[:4] == order[4:]
    assert "m/b1" in order[:3]  # not all of the heavier one first


def test_least_request_takes_the_emptiest_for_its_weight() -> None:
    states = BackendStates()
    pool = Pool(backends(2, 1), states, least_request=True)
    heavy, light = (states.of(backend.identity) for backend in backends(2, 1))
    heavy.in_flight, light.in_flight = 2, 0
    assert picked(pool, 3) == ["m/b1"] * 3  # 3/2 against 1/1
    light.in_flight = 1
    assert picked(pool, 3) == ["m/b0"] * 3  # 3/2 against 2/1


def test_a_backend_that_was_tried_is_passed_over_while_another_is_left() -> None:
    pool = Pool(backends(1, 1), BackendStates())
    assert {pool.pick(["m/b0"])[0].alias for _ in range(4)} == {"m/b1"}  # type: ignore[index]
    assert pool.pick(["m/b0", "m/b1"]) is not None


def test_ejected_and_unhealthy_backends_get_nothing_unless_all_are() -> None:
    states = BackendStates()
    pool = Pool(backends(1, 1, 1), states)
    first, second, third = pool.states
    first.healthy = False
    assert note_failure(second, pool.states, threshold=1, seconds=60, max_percent=50)
    assert picked(pool, 3) == ["m/b2"] * 3
    third.healthy = False
    assert set(picked(pool, 6)) == {"m/b0", "m/b1", "m/b2"}


@pytest.mark.parametrize(("count", "percent", "expected"), [(1, 50, 0), (2, 50, 1), (2, 10, 1), (4, 50, 2), (4, 0, 0), (3, 100, 3)])
def test_no_more_than_the_percentage_is_ejected(count: int, percent: int, expected: int) -> None:
    pool = Pool(backends(*[1] * count), BackendStates())
    ejected = [note_failure(state, pool.states, threshold=1, seconds=60, max_percent=percent) for state in pool.states]
    assert sum(ejected) == expected


def test_ejection_needs_failures_in_a_row_and_grows_with_each() -> None:
    pool = Pool(backends(1, 1), BackendStates())
    state = pool.states[0]
    assert not note_failure(state, pool.states, 2, 10, 50)
    note_success(state)
    assert not note_failure(state, pool.states, 2, 10, 50)
    assert note_failure(state, pool.states, 2, 10, 50)
    first = state.ejected_until
    state.ejected_until = 0
    note_failure(state, pool.states, 2, 10, 50)
    assert note_failure(state, pool.states, 2, 10, 50)
    assert state.ejected_until - first > 9  # twice as long as before


def test_consecutive_failures_of_a_real_backend_eject_it_and_a_reload_remembers() -> None:
    async def work() -> None:
        async with ScriptedBackend([answers(b"{}", 500)]) as bad, ScriptedBackend([answers()]) as good:
            found = document([model("m", bad.endpoint, good.endpoint, reliability={"consecutive_5xx": 2})])
            sender = Sender(found)
            statuses = [(await sender.send())[0].status for _ in range(8)]
            assert statuses.count(500) == 2
            assert sender.services.metrics.value("vsr_upstream_ejections", "m", "m/b0") == 1
            again = Sender(found, sender.services)
            assert [(await again.send())[0].status for _ in range(4)] == [200] * 4
            await sender.close()

    run(work)


def test_a_caller_without_time_takes_no_backend_out() -> None:
    async def work() -> None:
        async with ScriptedBackend([never]) as slow, ScriptedBackend([never]) as other:
            sender = Sender(document([model("m", slow.endpoint, other.endpoint, reliability={"consecutive_5xx": 1})]))
            for _ in range(3):
                with pytest.raises(DeadlineError, match="time that the request allows"):
                    await sender.send(deadline=Deadline.after(0.05, visible=True))
            states = sender.upstreams.models["m"].pool.states
            assert [state.ejected(time.monotonic()) for state in states] == [False, False]
            assert sender.services.activity.experience("m") == 0.5
            await sender.close()

    run(work)


def test_a_health_check_takes_a_backend_out_and_in_again() -> None:
    well = asyncio.Event()

    async def checked(asked: Asked, writer: asyncio.StreamWriter) -> None:
        await answers(b"", 200 if well.is_set() and asked.path == "/healthz" else 503)(asked, writer)

    async def work() -> None:
        async with ScriptedBackend([checked]) as sick, ScriptedBackend([answers()]) as good:
            checks = {"health_check_path": "/healthz", "health_check_interval": "20ms"}
            sender = Sender(document([model("m", sick.endpoint, good.endpoint, reliability=checks)]))
            state = sender.upstreams.models["m"].pool.states[0]
            sender.upstreams.start()
            while state.healthy:
                await asyncio.sleep(0.01)
            assert sender.services.metrics.value("vsr_upstream_healthy", "m", "m/b0") == 0
            assert [(await sender.send())[0].status for _ in range(4)] == [200] * 4
            well.set()
            while not state.healthy:
                await asyncio.sleep(0.01)
            await sender.upstreams.close()
            state.healthy = False  # found so by a generation that checked
            Sender(document([model("m", sick.endpoint, good.endpoint)]), sender.services).upstreams.start()
            assert state.healthy
            seen = len(sick.asked)
            await asyncio.sleep(0.1)
            assert len(sick.asked) == seen  # a generation that is closed checks no more
            await sender.close()

    run(work)


@pytest.mark.parametrize("back_off", ["1ms", "100ms"])
def test_a_retry_budget_bounds_how_many_repeat_at_a_time(back_off: str) -> None:
    """Ten requests fail together; a repeat goes on until it is answered, so that only one of them may."""
    together = asyncio.Barrier(10)

    async def script(asked: Asked, writer: asyncio.StreamWriter) -> None:
        if len(bad.asked) <= 10:
            await together.wait()
        else:
            await asyncio.sleep(0.3)
        await answers(b"{}", 503)(asked, writer)

    bad = ScriptedBackend([script])

    async def work() -> None:
        async with bad:
            slow = {"retry_count": 1, "retry_back_off_base": back_off, "retry_back_off_max": back_off}
            budget = {"retry_budget_percent": 10.0, "retry_budget_min_concurrency": 1}
            sender = Sender(document([model("m", bad.endpoint, reliability={**slow, **budget})]))
            await asyncio.gather(*(sender.send() for _ in range(10)))
            assert len(bad.asked) == 11
            await sender.close()

    run(work)
