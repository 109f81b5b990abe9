"""A Redis that is not there costs one try per pause."""

from __future__ import annotations

import asyncio
import socket

import pytest

from headway.router.config.document.stores import RedisConnection
from headway.router.metrics.registry import RouterMetrics
from headway.router.stores.redis_link import RedisLink
from tests.router.stores.redis_process import redis_server


def test_tries_are_spaced_out() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    now = [0.0]
    tried = []

    async def work() -> None:
        link = RedisLink(RedisConnection(host="127.0.0.1", port=port), lambda: now[0])

        async def ask(redis: object) -> int:
            tried.append(now[0])
            return int(await redis.ping())  # type: ignore[attr-defined]

        for now[0] in [step / 10 for step in range(80)]:
            assert await link.run(ask, 7) == 7
        assert link.trouble is not None
        await link.close()

    asyncio.run(work())
    assert [round(at, 1) for at in tried] == [0.0, 0.5, 1.5, 3.5, 7.5]


def test_a_server_that_accepts_and_says_nothing_costs_the_timeout_once() -> None:
    async def work() -> None:
        server = await asyncio.start_server(lambda reader, writer: asyncio.sleep(60), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        link = RedisLink(RedisConnection(host="127.0.0.1", port=port, timeout=1))
        calls = 0

        async def ask(redis: object) -> int:
            nonlocal calls
            calls += 1
            return int(await redis.ping())  # type: ignore[attr-defined]

        for _ in range(5):
            assert await link.run(ask, -1) == -1
        assert calls == 1
        await link.close()
        server.close()

    asyncio.run(asyncio.wait_for(work(), 10))


def test_it_is_told_once_when_redis_goes_and_once_when_it_is_back(caplog: pytest.LogCaptureFixture) -> None:
    """Many requests fail at the same time, and Redis is tried again after the shortest pause all the same."""
    caplog.set_level("INFO")
    metrics, now = RouterMetrics(), [0.0]

    async def work() -> None:
        with redis_server() as (port, process):
            link = RedisLink(RedisConnection(host="127.0.0.1", port=port, timeout=10), lambda: now[0], "budgets", metrics)
            count = link.script("return redis.call('INCR', KEYS[1])")

            async def many() -> list[int]:
                return list(await asyncio.gather(*(link.run(lambda redis: count(["n"]), -1) for _ in range(16))))

            assert sorted(await many()) == list(range(1, 17))
            assert metrics.value("headway_shared_store_up", "budgets") == 1
            process.kill()
            process.wait()
            assert await many() == [-1] * 16
            assert metrics.value("headway_shared_store_up", "budgets") == 0
            with redis_server(port=port):
                assert await many() == [-1] * 16  # it rests
                now[0] = 0.5
                assert sorted(await many()) == list(range(1, 17))
            await link.close()

    asyncio.run(asyncio.wait_for(work(), 60))
    assert metrics.value("headway_shared_store_up", "budgets") == 1
    assert metrics.value("headway_shared_store_failures", "budgets") == 32
    assert [each.getMessage().split(":")[0] for each in caplog.records if "Redis" in each.getMessage()] == [
        "Redis does not answer (budgets)", "Redis answers again (budgets)",
    ]  # fmt: skip
