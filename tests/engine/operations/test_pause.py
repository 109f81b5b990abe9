"""Pause, sleep and resets of an AsyncEngine with requests in flight."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from headway.engine.async_engine import AsyncEngine
from headway.engine.config import EngineConfig
from headway.engine.outputs import OutputKind, RequestOutput
from headway.engine.sampling_params import SamplingParams
from headway.errors import AsleepError, RequestError
from tests.engine.tiny_folder import complete_tiny_model

LONG = SamplingParams(temperature=0, max_tokens=80, ignore_eos=True, output_kind=OutputKind.DELTA)
PROMPT = [3 + i * i % 150 for i in range(20)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return complete_tiny_model("smollm", tmp_path_factory.mktemp("pause")).folder


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWAY_CACHE", str(tmp_path / "cache"))


def run(folder: Path, body: Callable[[AsyncEngine], Awaitable[None]]) -> None:
    async def whole() -> None:
        engine = AsyncEngine(EngineConfig(str(folder), max_model_len=128, num_gpu_blocks_override=40, dtype="float32", enable_sleep_mode=True))
        engine.start()
        await engine.ready()
        try:
            await body(engine)
        finally:
            await engine.shutdown()

    asyncio.run(asyncio.wait_for(whole(), 60))


def ask(engine: AsyncEngine, name: str) -> AsyncIterator[RequestOutput]:
    return engine.generate(list(PROMPT), LONG, name)


async def rest(outputs: AsyncIterator[RequestOutput]) -> tuple[list[int], str | None]:
    tokens: list[int] = []
    reason = None
    async for output in outputs:
        for part in output.outputs:
            tokens += part.token_ids
            reason = part.finish_reason or reason
    return tokens, reason


async def still(engine: AsyncEngine) -> bool:
    """No step is made, while there is work."""
    steps = engine.status.steps
    for _ in range(10):
        await engine.between_steps(lambda core: None)
    return engine.status.steps == steps


def test_a_pause_that_keeps_requests_only_delays_them(folder: Path) -> None:
    async def body(engine: AsyncEngine) -> None:
        expected, _ = await rest(ask(engine, "alone"))
        running = ask(engine, "kept")
        first = await anext(running)
        await engine.operations.pause("keep")
        assert (engine.status.held, engine.operations.is_paused) == ("paused", True)
        late = asyncio.create_task(rest(ask(engine, "late")))
        assert await still(engine)
        assert engine.status.running == 1
        await engine.operations.resume()
        tokens, reason = await rest(running)
        assert (first.outputs[0].token_ids + tokens, reason) == (expected, "length")
        assert (await late)[0] == expected
        assert not engine.operations.is_paused

    run(folder, body)


def test_a_pause_that_aborts_ends_requests_and_forgets_prefixes(folder: Path) -> None:
    async def body(engine: AsyncEngine) -> None:
        running = ask(engine, "cut")
        await anext(running)
        await engine.operations.pause("abort")
        assert (await rest(running))[1] == "abort"
        assert engine.loaded.core.scheduler.kv.pool._by_hash == {}
        await engine.operations.resume()
        assert (await rest(ask(engine, "next")))[1] == "length"

    run(folder, body)


def test_a_pause_that_waits_lets_requests_end_and_holds_new_ones(folder: Path) -> None:
    async def body(engine: AsyncEngine) -> None:
        running = ask(engine, "ends")
        first = await anext(running)
        pausing = asyncio.create_task(engine.operations.pause("wait", clear_cache=False))
        while not engine.gate.paused:
            await asyncio.sleep(0)
        late = asyncio.create_task(rest(ask(engine, "late")))
        tokens, reason = await rest(running)
        assert (len(first.outputs[0].token_ids + tokens), reason) == (80, "length")
        await pausing
        assert await still(engine)
        assert not late.done()
        assert engine.loaded.core.scheduler.kv.pool._by_hash
        with pytest.raises(RequestError, match="must be among"):
            await engine.operations.wake_up(["engine"])
        await engine.operations.resume()
        assert len((await late)[0]) == 80

    run(folder, body)


@pytest.mark.parametrize("level", [1, 2])
def test_a_sleeping_engine_refuses_and_a_woken_one_answers_as_before(folder: Path, level: int) -> None:
    async def body(engine: AsyncEngine) -> None:
        expected, _ = await rest(ask(engine, "alone"))
        running = ask(engine, "cut")
        await anext(running)
        await engine.operations.sleep(level)
        assert (await rest(running))[1] == "abort"
        assert (engine.status.held, engine.operations.sleep_level) == ("asleep", level)
        with pytest.raises(AsleepError):
            await rest(ask(engine, "early"))
        await engine.operations.sleep(level)  # sleeps on
        await engine.operations.resume()  # which is no waking up
        with pytest.raises(AsleepError):
            await rest(ask(engine, "early"))
        await engine.operations.wake_up()
        assert (await rest(ask(engine, "after")))[0] == expected
        assert engine.operations.sleep_level is None

    run(folder, body)


def test_requests_that_a_sleep_keeps_go_on_where_they_were(folder: Path) -> None:
    async def body(engine: AsyncEngine) -> None:
        expected, _ = await rest(ask(engine, "alone"))
        running = [ask(engine, f"kept-{i}") for i in range(3)]
        firsts = [(await anext(each)).outputs[0].token_ids for each in running]
        with pytest.raises(RequestError, match="cannot be kept"):
            await engine.operations.sleep(2, "keep")
        await engine.operations.sleep(1, "keep")
        assert engine.status.running == 0
        assert engine.status.waiting == 3
        await engine.operations.wake_up()
        for first, each in zip(firsts, running, strict=True):
            assert first + (await rest(each))[0] == expected

    run(folder, body)


def test_a_reset_with_running_requests_has_them_computed_again(folder: Path) -> None:
    async def body(engine: AsyncEngine) -> None:
        expected, _ = await rest(ask(engine, "alone"))
        running = ask(engine, "reset")
        first = (await anext(running)).outputs[0].token_ids
        assert not await engine.reset_prefix_cache()
        assert await engine.reset_prefix_cache(running=True)
        assert first + (await rest(running))[0] == expected

    run(folder, body)


def test_requests_are_aborted_by_the_ids_of_their_answers(folder: Path) -> None:
    async def body(engine: AsyncEngine) -> None:
        running = {name: ask(engine, name) for name in ("chat-a-0-11", "chat-a-1-22", "chat-ab-0-33")}
        for each in running.values():
            await anext(each)
        assert await engine.operations.abort_requests(["chat-a", "nobody"]) == 2
        reasons = [(await rest(each))[1] for each in running.values()]
        assert reasons == ["abort", "abort", "length"]
        assert await engine.operations.abort_requests([]) == 0

    run(folder, body)
