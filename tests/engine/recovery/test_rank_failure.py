"""A rank fails: what requests hear, what is left of the engine, and what operators can do meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import pytest

from headway.engine.outputs import OutputKind, RequestOutput
from headway.engine.sampling_params import SamplingParams
from headway.errors import AsleepError, CapacityError, EngineDeadError, RankError, RestartingError
from tests.engine.recovery.scripted_ranks import WHY, RankWorld
from tests.engine.scripted_core import ScriptedCore, say


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[RankWorld]:
    made = RankWorld(monkeypatch, enable_sleep_mode=True)
    yield made
    made.go.set()
    made.may_load.set()
    made.engine._commands.put(None)
    made.engine._thread.join(60)
    assert not made.engine._thread.is_alive()
    assert made.ended == 1
    for number in range(len(made.groups)):
        made.check_freed(number)


def run(world: RankWorld, body: Callable[[], Awaitable[None]]) -> None:
    world.start()
    asyncio.run(asyncio.wait_for(body(), 120))


def ask(world: RankWorld, name: str, max_tokens: int = 5) -> AsyncIterator[RequestOutput]:
    params = SamplingParams(max_tokens=max_tokens, temperature=0, output_kind=OutputKind.DELTA)
    return world.engine.generate([72, 105], params, name)


async def text(outputs: AsyncIterator[RequestOutput]) -> str:
    return "".join([o.outputs[0].text async for o in outputs])


async def until(condition: Callable[[], object]) -> None:
    while not condition():
        await asyncio.sleep(0.002)


def test_a_step_with_a_dead_rank_is_not_tried_sequence_by_sequence() -> None:
    scripted = ScriptedCore(say("xxx"))
    for name in "abc":
        scripted.add(name)
    error = RankError(1, "there", WHY)

    def execute(plan: object) -> None:
        scripted.runner.calls += 1
        raise error

    scripted.runner.execute = execute  # type: ignore[assignment,method-assign]
    with pytest.raises(RankError):
        scripted.core.step()
    assert scripted.runner.calls == 1
    assert scripted.core.num_requests == 3
    scripted.core.fail_all(error)
    scripted.check_empty()
    assert [r.finish_reason for r in scripted.requests] == ["error"] * 3
    assert scripted.runner.cleared == [], "the cache may be on ranks that are gone"


def test_all_open_requests_end_with_the_failure_and_later_ones_are_answered(world: RankWorld) -> None:
    async def body() -> None:
        world.stop_at = 3
        first = ask(world, "first", 50)
        await anext(first)
        running = asyncio.create_task(text(first))
        await until(lambda: world.model.passes == 3)
        queued = [asyncio.create_task(text(ask(world, name))) for name in ("behind", "the", "pass")]
        await until(lambda: world.engine.status.requests == 4)
        world.fail_in_a_pass()
        for task in (running, *queued):
            with pytest.raises(RankError, match=f"rank 1 on there failed: {WHY}"):
                await task
        assert world.engine.status.requests == 0
        await world.engine.ready()
        assert await text(ask(world, "first")) == "xxxxx"
        assert len(world.groups) == 2
        assert not world.groups[1].closed

    run(world, body)


def test_a_rank_that_dies_while_nothing_is_asked_is_noticed(world: RankWorld) -> None:
    async def body() -> None:
        old = world.ranks
        await asyncio.to_thread(old.fail)
        await until(lambda: len(world.groups) == 2)
        await world.engine.ready()
        old.fail()  # is no news
        assert await text(ask(world, "later")) == "xxxxx"
        assert len(world.groups) == 2

    run(world, body)


def test_what_is_asked_during_a_restart_is_refused_with_what_happens(world: RankWorld) -> None:
    async def body() -> None:
        world.may_load.clear()
        world.ranks.fail()
        await until(lambda: world.engine.status.progress == 0.5)
        status = world.engine.status
        assert (status.stage, status.restart is not None and status.restart.attempt) == ("restarting", 1)
        assert world.engine.ranks == ()
        for refused in (text(ask(world, "a")), world.engine.reset_prefix_cache(), world.engine.operations.pause()):
            with pytest.raises(RestartingError, match=f"rank 1 on there failed: {WHY}. Attempt 1 of 5 is loading"):
                await refused
        world.engine.gate.paused = False
        world.may_load.set()
        await world.engine.ready()
        assert await text(ask(world, "a")) == "xxxxx"

    run(world, body)


def test_a_load_that_fails_is_tried_again_until_the_attempts_are_used_up(world: RankWorld) -> None:
    async def body() -> None:
        world.next_loads = [CapacityError("2 GiB are missing"), RankError(2, "other", "no route")]
        world.ranks.fail()
        await until(lambda: len(world.groups) == 2)
        await world.engine.ready()
        assert await text(ask(world, "a")) == "xxxxx"
        world.next_loads = [RankError(2, "other", f"no route {i}") for i in range(9)]
        world.ranks.fail()
        await until(lambda: world.engine.dead_reason)
        with pytest.raises(EngineDeadError):
            await world.engine.ready()
        reason = world.engine.dead_reason
        assert reason is not None
        assert reason.startswith("the engine failed 6 times within 600 s: 1. rank 1 on there failed")
        assert "6. rank 2 on other failed: no route 1 [engine_dead]" in reason
        with pytest.raises(EngineDeadError, match="no route 1"):
            await text(ask(world, "a"))

    run(world, body)


@pytest.mark.parametrize("while_it", ["waits", "loads"])
def test_a_shutdown_during_a_restart_ends_the_engine(world: RankWorld, while_it: str) -> None:
    async def body() -> None:
        world.may_load.clear()
        if while_it == "waits":
            world.engine.restarts._back_off = type(world.engine.restarts._back_off)((600.0,))
        world.ranks.fail()
        await until(lambda: world.engine.status.restart)
        if while_it == "loads":
            await until(lambda: world.engine.status.progress == 0.5)
        ending = asyncio.create_task(world.engine.shutdown())
        await asyncio.sleep(0.02)
        world.may_load.set()
        await ending
        assert world.engine.status.stage == "stopped"
        assert len(world.groups) == (1 if while_it == "waits" else 2)

    run(world, body)


def test_a_pause_outlives_a_restart_and_what_was_kept_ends(world: RankWorld) -> None:
    async def body() -> None:
        world.stop_at = 2
        kept = ask(world, "kept", 50)
        await anext(kept)
        pausing = asyncio.create_task(world.engine.operations.pause("keep"))
        await until(lambda: world.engine.gate.closed)
        world.go.set()
        await pausing
        await asyncio.to_thread(world.ranks.fail)
        with pytest.raises(RankError):
            await text(kept)
        await world.engine.ready()
        assert world.engine.status.held == "paused"
        waiting = asyncio.create_task(text(ask(world, "waiting")))
        await asyncio.sleep(0.03)
        assert not waiting.done()
        await world.engine.operations.resume()
        assert await waiting == "xxxxx"

    run(world, body)


def test_a_sleeping_engine_is_awake_after_a_restart(world: RankWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    from headway.engine.operations import engine_operations

    monkeypatch.setattr(engine_operations, "_sleep_now", lambda core, level: engine_operations.Sleep(level, None))

    async def body() -> None:
        await world.engine.operations.sleep(1)
        with pytest.raises(AsleepError):
            await text(ask(world, "a"))
        await asyncio.to_thread(world.ranks.fail)
        await until(lambda: len(world.groups) == 2)
        await world.engine.ready()
        assert world.engine.operations.sleep_level is None
        assert await text(ask(world, "a")) == "xxxxx"
        await world.engine.operations.wake_up()

    run(world, body)


def test_what_was_ordered_during_a_restart_is_not_done_after_it(world: RankWorld) -> None:
    async def body() -> None:
        done: list[object] = []
        world.may_load.clear()
        world.ranks.fail()
        await until(lambda: world.engine.status.progress == 0.5)
        with pytest.raises(RestartingError):
            await world.engine.between_steps(done.append)
        world.may_load.set()
        await world.engine.ready()
        await world.engine.between_steps(lambda core: None)
        assert done == []

    run(world, body)
