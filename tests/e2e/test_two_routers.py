"""Two real routers before one backend, with one Redis between them: they behave as one, and go on when Redis does not."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.router_process import PUBLIC, RunningRouter, backend, started_router
from tests.router.stores.redis_process import redis_server
from tests.router.upstream.scripted_backend import WHOLE, ScriptedBackend, answers

pytestmark = pytest.mark.long

LIMIT = 20
COST = 0.012  # of one answer: 2 tokens of prompt and 10 generated, at 1000 for a million
USED = {**WHOLE, "usage": {"prompt_tokens": 2, "completion_tokens": 10, "total_tokens": 12}}
BOB, ALICE, CAROL = ({"authorization": f"Bearer {name}"} for name in ("bob", "alice", "carol"))


def document(endpoint: str, port: int, fail_open: bool) -> dict[str, Any]:
    redis = {"address": f"127.0.0.1:{port}", "read_timeout": 10}  # of a machine that does much else
    shared = {"store_backend": "redis", "redis": redis}
    price = {"prompt_per_1m": 1000.0, "completion_per_1m": 1000.0}
    models = [{"name": name, "pricing": price, "backend_refs": [{"name": "one", "endpoint": endpoint}]} for name in ("m1", "m2", "m3", "m4")]
    refs = [{"model": model["name"]} for model in models]
    cached = {"type": "response_cache", "configuration": {"enabled": True, "mode": "exact", "scope": "global"}}
    keyword = {"operator": "AND", "conditions": [{"type": "keyword", "name": "kept"}]}
    keys = [{"name": name, "key": name} for name in ("bob", "carol")]
    alice = {"name": "alice", "key": "alice", "budget": {"amount": 10.5 * COST, "per": "total"}}
    return {
        "version": "v0.3",
        "listeners": [{"name": "public", "address": "127.0.0.1", "port": PUBLIC, "keys": [alice, *keys]}],
        "providers": {"defaults": {"model": "m1"}, "models": models},
        "routing": {
            "signals": {"keywords": [{"name": "kept", "operator": "OR", "keywords": ["remember"]}]},
            "decisions": [
                {"name": "kept", "priority": 10, "rules": keyword, "modelRefs": refs[:1], "plugins": [cached]},
                {"name": "any", "modelRefs": refs, "algorithm": {"type": "random"}, "plugins": [{"type": "router_replay", "configuration": {"enabled": True}}]},
            ],
        },
        "global": {
            "stores": {"response_cache": {"backend_type": "redis", "redis": {"connection": {"host": "127.0.0.1", "port": port, "timeout": 10}}}},
            "services": {
                "ratelimit": {**shared, "fail_open": fail_open, "providers": [{"rules": [
                    {"name": "few", "match": {"user": "bob"}, "requests_per_unit": LIMIT, "unit": "hour"},
                ]}]},
                "budgets": {**shared, "fail_open": fail_open},
                "router_replay": {**shared, "enabled": True},
            },
            "router": {"learning": {"enabled": True, "protection": {**shared, "enabled": True, "scope": "session"}}},
        },
    }  # fmt: skip


@contextmanager
def pair(folder: Path, port: int, fail_open: bool = False) -> Iterator[tuple[RunningRouter, RunningRouter, ScriptedBackend]]:
    with backend(answers(USED)) as behind, ExitStack() as stack:
        said = document(behind.endpoint, port, fail_open)
        routers = [stack.enter_context(started_router(folder / name, said, wait=False)) for name in ("a", "b")]
        for router in routers:
            router.until(router.is_ready)
        yield routers[0], routers[1], behind


def away_from_the_hour(seconds: float) -> None:
    """A window of the limits must not end within a test."""
    left = 3600 - time.time() % 3600
    if left < seconds:
        time.sleep(left + 0.1)


def statuses(routers: tuple[RunningRouter, RunningRouter], headers: dict[str, str], number: int) -> Counter[int]:
    """Of `number` requests, to both in turn, sixteen at a time."""
    with ThreadPoolExecutor(16) as pool:
        return Counter(pool.map(lambda at: routers[at % 2].chat("hi", headers=headers, max_tokens=10).status_code, range(number)))


def test_they_behave_as_one(tmp_path: Path) -> None:
    with redis_server() as (port, _), pair(tmp_path, port) as (one, other, behind):
        away_from_the_hour(60)
        # rate limits: as many as one router would let in
        assert statuses((one, other), BOB, 3 * LIMIT) == {200: LIMIT, 429: 2 * LIMIT}
        assert len(behind.asked) == LIMIT
        # budgets: ten answers fit, the eleventh does not, wherever it comes
        granted = statuses((one, other), ALICE, 40)[200]
        while (more := one.chat("hi", headers=ALICE, max_tokens=10)).status_code == 200:  # some were refused while others held money back
            granted += 1
        assert granted == 10
        assert more.headers["x-headway-budget-spent"] == f"{10 * COST:.6f}"
        assert other.chat("hi", headers=ALICE, max_tokens=10).json()["error"]["reason"] == "budget_exceeded"
        # sessions: the first model stays, although each request alone would draw another
        for session in ("s1", "s2", "s3"):
            named = {**CAROL, "x-session-id": session}
            models = [router.chat("hi", headers=named).headers["x-vsr-selected-model"] for router in (one, other) * 6]
            assert len(set(models)) == 1
        # the response cache
        before = len(behind.asked)
        first = one.chat("remember this", headers=CAROL)
        again = other.chat("remember this", headers=CAROL)
        assert (again.headers["x-vsr-response-path"], again.json()["choices"]) == ("cache", first.json()["choices"])
        assert len(behind.asked) == before + 1
        # replays
        recorded = one.chat("hi", headers=CAROL).headers["x-vsr-replay-id"]
        other.until(lambda: other.get(f"/api/v1/observability/replays/{recorded}").status_code == 200, 90)
        found = other.get(f"/api/v1/observability/replays/{recorded}").json()
        assert found["id"] == recorded
        listed = [router.get("/api/v1/observability/replays?limit=100").json() for router in (one, other)]
        assert listed[0] == listed[1]
        assert listed[0]["total"] >= LIMIT + 10 + 36


@pytest.mark.parametrize("fail_open", [True, False])
def test_redis_is_killed_under_load_and_comes_back(tmp_path: Path, fail_open: bool) -> None:
    seen: list[tuple[str, int]] = []  # phase, status
    phase, ended, slowest = "before", threading.Event(), [0.0]

    def ask(router: RunningRouter, headers: dict[str, str]) -> None:
        with httpx.Client(trust_env=False, timeout=60) as client:
            while not ended.is_set():
                began, at = time.monotonic(), phase
                body = {"model": "vllm-sr/auto", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 10}
                answer = client.post(f"{router.url}/v1/chat/completions", json=body, headers={**headers, "x-session-id": "s"})
                slowest[0] = max(slowest[0], time.monotonic() - began)
                seen.append((at if at == phase else "between", answer.status_code))
                time.sleep(0.01)

    def until(found: tuple[str, int], number: int) -> None:
        deadline = time.monotonic() + 120
        while Counter(seen)[found] < number:
            assert time.monotonic() < deadline, (Counter(seen), found)
            time.sleep(0.02)

    away_from_the_hour(120)
    with ExitStack() as stack:
        port, process = stack.enter_context(redis_server())
        one, other, _ = stack.enter_context(pair(tmp_path, port, fail_open))
        pool = stack.enter_context(ThreadPoolExecutor(12))
        stack.callback(ended.set)
        asking = [pool.submit(ask, router, who) for router in (one, other) for who in (CAROL, ALICE)]
        until(("before", 200), 20)
        until(("before", 429), 5)  # alice has spent her budget
        phase = "between"
        process.kill()
        process.wait()
        for router in (one, other):
            router.until(lambda router=router: router.metric('headway_shared_store_up{store="budgets"}') == 0, 90)  # type: ignore[misc]
        phase = "away"
        until(("away", 200), 20)  # carol has neither limit nor budget; alice goes on if it is so declared
        if not fail_open:
            until(("away", 503), 5)
            assert one.chat("hi", headers=BOB).json()["error"]["reason"] == "store_unavailable"
        lost = one.chat("hi", headers=CAROL).headers["x-vsr-replay-id"]
        phase = "between"
        stack.enter_context(redis_server(port=port))
        for router in (one, other):
            router.until(lambda router=router: all(  # type: ignore[misc]
                router.metric(f'headway_shared_store_up{{store="{store}"}}') == 1 for store in ("budgets", "sessions", "router_replay")
            ), 90)  # fmt: skip
        phase = "after"
        until(("after", 200), 20)
        until(("after", 429), 5)  # Redis has lost what alice spent, the routers have not
        ended.set()
        for each in asking:
            each.result(90)  # nothing hangs, no connection broke
        other.until(lambda: other.get(f"/api/v1/observability/replays/{lost}").status_code == 200, 90)
        for said in ("Redis does not answer (budgets)", "Redis answers again (budgets)"):
            assert said in one.log.read_text()
    known = {200, 429, *(() if fail_open else (503,))}
    assert {status for _, status in seen} <= known
    assert 503 not in {status for at, status in seen if at in ("before", "after")}
