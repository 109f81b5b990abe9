"""Replays in a real Redis: what one router records every other sees, as the store in SQLite shows it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
import redis

from headway.errors import NotFoundError
from headway.router.config.document.services import ReplayRedis
from headway.router.metrics.registry import RouterMetrics
from headway.router.protocols.responses.store import StoreUnavailableError
from headway.router.stores.replays.redis_store import RedisReplays
from headway.router.stores.replays.store import Filters, OutcomeConflictError, ReplayStore
from tests.router.stores.redis_process import redis_server


def record(number: int, **fields: Any) -> dict[str, Any]:
    return {
        "id": f"replay_{number}", "timestamp": 1000.0 + number, "recipe": "default", "decision": "d", "selected_model": f"m{number % 3}", "session_id": f"s{number % 2}",
        "cache_status": "miss", "status": 200 if number % 4 else 500, "usage": {"total_tokens": number}, "latency_ms": 10.0 * number,
        "request_body": f"Text {number}", **fields,
    }  # fmt: skip


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with redis_server() as (port, _):
        yield port


@pytest.fixture
def pair(port: int) -> Iterator[tuple[RedisReplays, RedisReplays]]:
    redis.Redis(port=port).flushall()
    stores = opened(port), opened(port)
    yield stores
    for store in stores:
        store.close()


def opened(port: int, metrics: RouterMetrics | None = None) -> RedisReplays:
    return RedisReplays(ReplayRedis(address=f"127.0.0.1:{port}", read_timeout=10), 100, 3600, metrics)


def until(condition: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_another_router_shows_what_the_store_in_sqlite_would(pair: tuple[RedisReplays, RedisReplays]) -> None:
    one, other = pair
    local = ReplayStore(None, 100, 3600, asynchronous=False)
    for number in range(70):
        one.add(record(number))
        local.add({**record(number), "timestamp": time.time()})
    until(lambda: other.find(Filters(), 1, 0)[1] == 70)
    for filters in (Filters(), Filters(model="m1"), Filters(session="s1", search="text 6"), Filters(cache="hit")):
        found, total = other.find(filters, 7, 3)
        expected, number = local.find(filters, 7, 3)
        assert ([each["id"] for each in found], total) == ([each["id"] for each in expected], number)
        assert {name: value or 0 for name, value in other.aggregate(filters).items()} == {name: value or 0 for name, value in local.aggregate(filters).items()}
    assert other.get("replay_5") == {**record(5), "outcomes": []}
    assert [each["id"] for each in other.trajectory("s1", 3)] == ["replay_1", "replay_3", "replay_5"]
    with pytest.raises(NotFoundError):
        other.get("replay_none")
    local.close()


def test_outcomes_are_kept_once_per_key_by_all_routers(pair: tuple[RedisReplays, RedisReplays]) -> None:
    one, other = pair
    one.add(record(1))
    made, new = one.add_outcome("replay_1", {"verdict": "good"}, "key")
    assert new
    assert other.add_outcome("replay_1", {"verdict": "good"}, "key") == (made, False)
    with pytest.raises(OutcomeConflictError):
        other.add_outcome("replay_1", {"verdict": "bad"}, "key")
    with pytest.raises(NotFoundError):
        other.add_outcome("replay_2", {"verdict": "bad"})
    early, _ = other.add_outcome("replay_2", {"verdict": "completed"}, early=True)  # its record comes at the end of a stream
    other.add(record(2))
    until(lambda: one.find(Filters(), 1, 0)[1] == 2)
    assert (one.get("replay_1")["outcomes"], one.get("replay_2")["outcomes"]) == ([made], [early])


def test_the_oldest_go_by_number_with_all_that_belongs_to_them(port: int, pair: tuple[RedisReplays, RedisReplays]) -> None:
    one, other = pair
    for number in range(6):
        one.add(record(number))
    until(lambda: other.find(Filters(), 1, 0)[1] == 6)
    other.add_outcome("replay_0", {"verdict": "good"})
    one.limit(3, 3600)
    one.add(record(6))
    until(lambda: [each["id"] for each in other.find(Filters(), 9, 0)[0]] == ["replay_6", "replay_5", "replay_4"])
    client = redis.Redis(port=port)
    assert sorted(key.decode().split(":", 3)[3] for key in client.scan_iter() if b":s:" not in key) == ["index", "r:replay_4", "r:replay_5", "r:replay_6"]
    assert [each["id"] for each in other.trajectory("s0", 9)] == ["replay_4", "replay_6"]
    assert all(0 < client.ttl(key) <= 3600 for key in client.scan_iter() if not key.endswith(b"index"))


def test_records_wait_while_redis_is_away(port: int) -> None:
    metrics = RouterMetrics()
    with ExitStack() as stack:
        away, process = stack.enter_context(redis_server())
        store = opened(away, metrics)
        stack.callback(store.close)
        store.add(record(1))
        until(lambda: store.find(Filters(), 1, 0)[1] == 1)
        assert metrics.value("headway_shared_store_up", "router_replay") == 1
        process.kill()
        process.wait()
        store.add(record(2))
        until(lambda: metrics.value("headway_shared_store_up", "router_replay") == 0)
        with pytest.raises(StoreUnavailableError):
            store.find(Filters(), 1, 0)
        stack.enter_context(redis_server(port=away))
        until(lambda: metrics.value("headway_shared_store_up", "router_replay") == 1)
        assert [each["id"] for each in store.find(Filters(), 9, 0)[0]] == ["replay_2"]
        assert store.dropped == 0
