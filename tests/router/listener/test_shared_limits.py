"""Rate limits and budgets in a real Redis: exact under concurrency, and what happens without it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headway.router.config.document.listeners import KeyBudget
from headway.router.config.document.services import RateLimitRule
from headway.router.config.document.stores import RedisConnection
from headway.router.listener.shared_limits import SharedLimits
from headway.router.spend import shared_budgets
from headway.router.spend.shared_budgets import SharedBudgets, SharedHold, Standing
from headway.router.spend.shared_script import MONTH_START
from headway.router.stores.redis_link import RedisLink
from tests.router.listener.live_front import LiveFront, run
from tests.router.listener.test_budgets import ALICE, PRICED, TEN_TOKENS, keyed
from tests.router.stores.redis_process import redis_server
from tests.router.upstream.scripted_backend import ScriptedBackend, answers

CALLERS = st.sampled_from(["ann", "ben"])


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with redis_server() as (port, _):
        yield port


def link(port: int) -> RedisLink:
    return RedisLink(RedisConnection(host="127.0.0.1", port=port, timeout=10))


def emptied(port: int) -> redis.Redis:
    client = redis.Redis(host="127.0.0.1", port=port)
    client.flushall()
    left = 86400 - client.time()[0] % 86400
    if left < 30:  # no window ends within a test
        time.sleep(left + 0.1)
    return client


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(CALLERS, st.integers(0, 1)), min_size=1, max_size=40), st.integers(1, 12))
def test_two_routers_let_in_as_many_as_the_limit_says(port: int, asked: Sequence[tuple[str, int]], most: int) -> None:
    rules = [RateLimitRule(name="few", requests_per_unit=most, unit="day"), RateLimitRule(name="many", requests_per_unit=30, unit="hour")]
    client = emptied(port)

    async def work() -> None:
        routers = [SharedLimits(link(port), "t:") for _ in range(2)]
        counted = await asyncio.gather(*(routers[router].count(rules, caller) for caller, router in asked))
        for name in ("ann", "ben"):
            let_in = [found for found, (caller, _) in zip(counted, asked, strict=True) if caller == name and found is not None and found.limited is None]
            assert len(let_in) == min(most, sum(caller == name for caller, _ in asked))
            assert sorted(found.windows[0].requests for found in let_in) == list(range(1, len(let_in) + 1))
            assert [found.windows[1].requests for found in let_in] == [found.windows[0].requests for found in let_in]
            after = await routers[0].count(rules[1:], name)
            assert after is not None
            assert after.windows[0].requests == len(let_in) + 1  # a request counts under all rules or under none
        for router in routers:
            await router.close()

    run(work)
    assert all(0 < client.ttl(key) <= 86400 + 60 for key in client.keys("t:*"))


def test_windows_end_by_the_clock_of_redis_and_are_charged_while_they_last(port: int) -> None:
    client = emptied(port)
    second = [RateLimitRule(name="s", requests_per_unit=1, unit="second")]
    tokens = [RateLimitRule(name="t", tokens_per_unit=10, unit="day")]

    async def work() -> None:
        limits, other = SharedLimits(link(port), "t:"), SharedLimits(link(port), "t:")
        first = await limits.count(second, "ann")
        assert first is not None
        while (then := await other.count(second, "ann")) is not None and then.limited is not None:
            await asyncio.sleep(0.02)
        assert then is not None
        assert then.now > first.now
        counted = await limits.count(tokens, "ann")
        assert counted is not None
        settle = limits.charging(tokens, "ann", counted.windows)
        for charged in (4, 3):
            counted.windows[0].tokens += charged
            await settle()
        assert (await other.count(tokens, "ann")).limited is None  # type: ignore[union-attr]
        counted.windows[0].tokens += 3
        await asyncio.gather(settle(), settle())
        refused = await other.count(tokens, "ann")
        assert refused is not None
        assert (refused.limited, refused.tokens) == (0, True)
        (key,) = [key for key in client.keys("t:*") if client.hget(key, "tokens") == b"10"]
        client.hset(key, "start", 0)  # a window that is over is not charged
        counted.windows[0].tokens += 5
        await settle()
        assert client.hget(key, "tokens") == b"10"
        for each in (limits, other):
            await each.close()

    run(work)


def test_a_budget_is_spent_once_by_two_routers(port: int) -> None:
    emptied(port)
    budget = KeyBudget(amount=10.5, per="total")

    async def reserved(routers: Sequence[SharedBudgets], number: int) -> list[SharedHold]:
        found = await asyncio.gather(*(routers[at % 2].reserve("ann", budget, 1.0, 1.0) for at in range(number)))
        return [standing.hold for standing in found if standing is not None and standing.hold is not None]

    async def work() -> None:
        routers = [SharedBudgets(link(port), "t:") for _ in range(2)]
        holds = await reserved(routers, 40)
        assert len(holds) == 10
        for hold in holds:
            hold.charge(0.25, "USD")
            hold.charge(100, "EUR")  # another currency is another budget
            hold.release()
        await asyncio.gather(*(hold.settle() for hold in holds))
        standing = await routers[0].reserve("ann", budget, 0.0, 0.0)
        assert standing is not None
        assert (standing.spent, standing.held) == (2.5, 0.0)
        assert len(await reserved(routers, 40)) == 8
        for router in routers:
            await router.close()

    run(work)


def test_a_router_that_dies_frees_its_holds_and_a_redis_that_forgets_is_told_again(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    client, held = emptied(port), "t:v1:held:ann:USD"
    budget = KeyBudget(amount=5, per="month")

    async def standing(router: SharedBudgets, sure: float) -> Standing:
        found = await router.reserve("ann", budget, sure, sure)
        assert found is not None
        return found

    def promised() -> int:
        """Until when something is held back."""
        return max(int(value.split()[2]) for value in [*client.hvals(held), b"0 0 0"])

    async def work() -> None:
        dying, living = SharedBudgets(link(port), "t:"), SharedBudgets(link(port), "t:")
        assert (await standing(dying, 5)).hold is not None
        monkeypatch.setattr(shared_budgets, "_LEASE_SECONDS", 1)
        dying._keeper.cancel()  # type: ignore[union-attr]
        own = await standing(living, 1)
        assert (own.hold, own.held) == (None, 5.0)
        client.hset(held, dying._process, "1 5000000000 1")  # its time is over, as it is a minute later
        own = await standing(living, 4)
        assert own.hold is not None
        first = promised()
        while promised() <= first:  # what it holds back it says again
            await asyncio.sleep(0.05)
        assert (await standing(living, 1.5)).held == 4.0
        own.hold.charge(3, "USD")
        own.hold.release()
        client.flushall()
        assert (await standing(living, 3)).hold is None  # nobody told what was spent, but whoever asks says it
        assert (await standing(living, 0)).spent == 3.0
        for each in (dying, living):
            await each.close()

    run(work)


def test_months_begin_as_in_the_calendar(port: int) -> None:
    days = [*range(0, 40_000, 17), *range(11_000, 11_500), *range(47_400, 47_600)]
    script = MONTH_START + "local found = {} for i, day in ipairs(ARGV) do found[i] = month_start(tonumber(day)) end return found"
    found = redis.Redis(host="127.0.0.1", port=port).eval(script, 0, *days)
    first = date(1970, 1, 1)
    assert found == [((first + timedelta(day)).replace(day=1) - first).days for day in days]


@pytest.mark.parametrize("fail_open", [False, True])
def test_what_happens_without_redis_is_declared(tmp_path: Path, fail_open: bool) -> None:
    async def work() -> None:
        shared = {"store_backend": "redis", "redis": {"address": "127.0.0.1:1"}, "fail_open": fail_open}
        limits = {"providers": [{"rules": [{"name": "few", "match": {"user": "bob"}, "requests_per_unit": 2, "unit": "day"}]}]}
        services: dict[str, Any] = {"ratelimit": {**shared, **limits}, "budgets": shared}
        listeners = keyed(0.05)["listeners"]
        listeners[0]["keys"] += [{"name": name, "key": name} for name in ("bob", "carol")]
        said: dict[str, Any] = {"model": PRICED, "listeners": listeners, "global": {"services": services}}
        async with ScriptedBackend([answers()]) as backend, LiveFront(backend, tmp_path, **said) as front:
            bob = [await front.chat({"api-key": "bob"}) for _ in range(3)]
            alice = [await front.chat(ALICE, **TEN_TOKENS) for _ in range(4)]  # 0.011 each, of 0.022 held back: the fourth would find 0.017
            assert (await front.chat({"api-key": "carol"})).status_code == 200  # has neither limit nor budget
            counted = [front.counted("headway_shared_store_up", store) for store in ("ratelimit", "budgets")]
            await front.services.background.settle()
            await front.services.shared.close()
        assert counted == [0, 0]
        assert front.counted("headway_shared_store_failures", "ratelimit") == 3
        statuses = [answer.status_code for answer in bob], [answer.status_code for answer in alice]
        assert statuses == (([200, 200, 429], [200, 200, 200, 429]) if fail_open else ([503] * 3, [503] * 4))
        if not fail_open:
            assert {answer.json()["error"]["reason"] for answer in (*bob, *alice)} == {"store_unavailable"}

    run(work)


def test_a_redis_that_says_nothing_costs_one_wait_and_no_hanging() -> None:
    async def work() -> None:
        server = await asyncio.start_server(lambda reader, writer: asyncio.sleep(600), "127.0.0.1", 0)
        silent = RedisConnection(host="127.0.0.1", port=server.sockets[0].getsockname()[1], timeout=1)
        budgets, limits = SharedBudgets(RedisLink(silent), "t:"), SharedLimits(RedisLink(silent), "t:")
        rules = [RateLimitRule(name="few", requests_per_unit=1)]
        found = await asyncio.gather(
            *(budgets.reserve("ann", KeyBudget(amount=1), 0, 0) for _ in range(300)), *(limits.count(rules, "ann") for _ in range(300))
        )
        assert found == [None] * 600
        await budgets.close()
        await limits.close()
        server.close()

    run(work, 100)  # 300 waits one after the other would take longer


def test_periods_are_those_of_redis(port: int) -> None:
    """What was spent on days before the period does not count; days are those of Redis' clock."""
    client = emptied(port)
    now = datetime.fromtimestamp(client.time()[0], UTC).date()
    today = (now - date(1970, 1, 1)).days
    starts = {"day": now, "week": now - timedelta(now.weekday()), "month": now.replace(day=1)}

    async def work() -> None:
        for per, start in starts.items():
            first = (start - date(1970, 1, 1)).days
            client.delete(f"t:v1:spent:{per}:USD")
            client.hset(f"t:v1:spent:{per}:USD", mapping={f"{first - 1}:p": 7 * 10**9, f"{first}:q": 2 * 10**9, f"{today - 70}:p": 10**9})
            client.expire(f"t:v1:spent:{per}:USD", 100 * 86400)
            router = SharedBudgets(link(port), "t:")
            found = await router.reserve(per, KeyBudget(amount=100, per=per), 0, 0)  # type: ignore[arg-type]
            assert found is not None
            assert found.spent == 2.0
            await router.close()
            assert 0 < client.ttl(f"t:v1:spent:{per}:USD") <= 40 * 86400
            assert f"{today - 70}:p".encode() not in client.hkeys(f"t:v1:spent:{per}:USD")

    run(work)
