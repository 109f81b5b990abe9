"""Sessions stay with their model: by what is protected, for how long, and whichever router they meet."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
import redis

from headway.router.request.identity import Identity
from headway.router.selection.affinity.memory import ModelMemory, Turn
from tests.router.selection.harness import Chooser
from tests.router.stores.redis_process import redis_server

REFS = [{"model": name} for name in ("a", "b", "c", "d", "e", "f", "g", "h")]
RANDOM = {"type": "random"}


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with redis_server() as (port, _):
        yield port


@pytest.fixture(params=["memory", "redis"])
def backend(request: pytest.FixtureRequest, port: int) -> dict[str, Any]:
    redis.Redis(port=port).flushall()
    return {"store_backend": request.param, **({"redis": {"address": f"127.0.0.1:{port}", "read_timeout": 10}} if request.param == "redis" else {})}


def chooser(backend: dict[str, Any], algorithm: dict[str, Any] | None = RANDOM, decision: dict[str, Any] | None = None, **protection: Any) -> Chooser:
    learning = {"enabled": True, "protection": {"enabled": True, "scope": "session", **backend, **protection}}
    return Chooser(REFS, algorithm, global_={"router": {"learning": learning}}, decision=decision or {})


async def models(choosers: list[Chooser], session: str | None, number: int = 16, user: str = "ann", **more: Any) -> list[str | None]:
    """Of turns that meet the choosers in turn."""
    found = []
    for at in range(number):
        context = choosers[at % len(choosers)].context()
        context.headers = {"x-session-id": session, **more} if session else more
        context.identity = Identity(user=user)
        found.append((await choosers[at % len(choosers)].selector.select(context)).model)
    return found


def test_a_session_keeps_the_first_model_it_drew(backend: dict[str, Any]) -> None:
    async def work() -> None:
        routers = [chooser(backend), chooser(backend)] if backend["store_backend"] == "redis" else [chooser(backend)]
        assert len(set(await models(routers, "s1"))) == 1
        assert len(set(await models(routers, None, 40))) > 1
        firsts = [(await models(routers, f"t{number}", 1))[0] for number in range(40)]
        assert len(set(firsts)) > 1
        assert [(await models(routers[::-1], f"t{number}", 1))[0] for number in range(40)] == firsts
        others = [(await models(routers, "s1", 1, user=f"u{number}"))[0] for number in range(40)]  # of other callers, who may call theirs the same
        assert len(set(others)) > 1
        for each in routers:
            await each.services.shared.close()

    asyncio.run(work())


def test_at_the_same_time_only_one_model_is_drawn(backend: dict[str, Any]) -> None:
    async def work() -> None:
        router = chooser(backend)
        found = await asyncio.gather(*(models([router], "s", 1) for _ in range(24)))
        assert len({each[0] for each in found}) == 1
        await router.services.shared.close()

    asyncio.run(work())


def test_what_is_not_protected_is_drawn_anew(backend: dict[str, Any]) -> None:
    async def work() -> None:
        bypassed = chooser(backend, decision={"adaptations": {"mode": "bypass"}})
        by_conversation = chooser(backend, scope="conversation")
        assert len(set(await models([bypassed], "s", 40))) > 1
        assert len(set(await models([by_conversation], "s", 40))) > 1
        assert len(set(await models([by_conversation], "s", 16, **{"x-conversation-id": "c"}))) == 1
        for each in (bypassed, by_conversation):
            await each.services.shared.close()

    asyncio.run(work())


def test_a_preview_notes_nothing_and_a_better_model_takes_over_in_time(backend: dict[str, Any]) -> None:
    async def turns(memory: Any) -> None:
        async def model(proposed: str, close: tuple[str, ...] = (), decision: str = "d", dry: bool = False) -> str:
            others = [name for name in ("a", "b") if name not in close]
            return str(await memory.model(Turn("s", decision, proposed, close, others, 3, 300, dry)))

        assert [await model("b", dry=True), await model("a")] == ["b", "a"]
        assert [await model("b"), await model("b"), await model("b")] == ["a", "a", "b"]  # three turns, then the better one
        assert [await model("a", ("a", "b")) for _ in range(6)] == ["b"] * 6  # one that is not better by more than the margin does not
        assert await model("a", ("a", "b"), decision="e") == "a"
        assert await memory.model(Turn("s", "e", "c", ("c",), (), 3, 300)) == "c"  # the old one is no candidate any more

    async def work() -> None:
        router = chooser(backend)
        await turns(router.selector._keeper.memory)  # type: ignore[union-attr]
        await router.services.shared.close()

    asyncio.run(work())


def test_scores_decide_who_may_take_over() -> None:
    async def work() -> None:
        close = Chooser([{"model": "a", "weight": 0.52}, {"model": "b", "weight": 0.5}], {"type": "static"}, global_={"router": {"learning": {
            "enabled": True, "protection": {"enabled": True, "scope": "session", "tuning": {"min_turns_before_switch": 0}}}}})  # fmt: skip
        keeper = close.selector._keeper  # type: ignore[union-attr]
        assert keeper is not None
        context = close.context()
        context.headers = {"x-session-id": "s"}
        session = keeper._session("s", context)
        for margin, expected in ((0.05, "b"), (0.01, "a")):
            object.__setattr__(keeper.settings.tuning, "switch_margin", margin)
            await keeper.memory.model(Turn(session, "d", "b", ("b",), (), 0, 300))
            assert (await close.selector.select(context)).order[0] == expected

    asyncio.run(work())


def test_silent_sessions_are_forgotten() -> None:
    now = [0.0]
    memory = ModelMemory(lambda: now[0])

    async def work() -> None:
        def turn(proposed: str) -> Turn:
            return Turn("s", "d", proposed, ("a", "b"), (), 1, 300)

        assert await memory.model(turn("a")) == "a"
        now[0] = 299
        assert await memory.model(turn("b")) == "a"
        now[0] = 299 + 300
        assert await memory.model(turn("b")) == "b"

    asyncio.run(work())


def test_without_redis_a_session_keeps_what_this_router_saw(port: int) -> None:
    async def work() -> None:
        with redis_server() as (own, process):
            router = chooser({"store_backend": "redis", "redis": {"address": f"127.0.0.1:{own}"}})
            before = (await models([router], "s", 1))[0]
            process.kill()
            process.wait()
            assert set(await models([router], "s")) == {before}
            await router.services.shared.close()

    asyncio.run(work())
