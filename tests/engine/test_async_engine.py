"""AsyncEngine: threads, queues and endings, with a scripted model behind a real core."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from headway.engine import async_engine
from headway.engine.async_engine import AsyncEngine
from headway.engine.config import EngineConfig
from headway.engine.core import Observers
from headway.engine.loading import LoadedEngine
from headway.engine.memory_use import MemoryUse
from headway.engine.outputs import OutputKind, RequestOutput
from headway.engine.sampling_params import SamplingParams
from headway.errors import ArtifactError, EngineDeadError, LoadingError, QueueFullError, RequestError, StepError
from headway.telemetry.metrics import EngineMetrics
from tests.engine.byte_tokenizer import byte_tokenizer
from tests.engine.scripted_core import ScriptedCore, new_forms, say

TEXT = "x" * 400


class Fixture:
    """An engine over a scripted core; `gate`, when cleared, holds every forward pass."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **config: Any):
        self.world = ScriptedCore(say(TEXT))
        self.gate = threading.Event()
        self.gate.set()
        execute = self.world.runner.execute

        def gated(plan: Any) -> Any:
            self.gate.wait(10)
            time.sleep(0.001)  # the event loop has its turn, so that no test depends on who is faster
            return execute(plan)

        self.world.runner.execute = gated  # type: ignore[method-assign]
        loaded = LoadedEngine(self.world.core, None, byte_tokenizer(), self.world.limits, None, {}, MemoryUse(0, 0, None), new_forms())  # type: ignore[arg-type]
        monkeypatch.setattr(async_engine, "load_engine", lambda *a: loaded)
        self.metrics = EngineMetrics("scripted")
        self.ended = 0
        self.world.core.observers.on_step = self.metrics.on_step
        self.engine = AsyncEngine(EngineConfig(model="scripted", **config), Observers(self.metrics.on_step, on_end=self._on_end))

    def _on_end(self) -> None:
        self.ended += 1

    def gauge(self, name: str) -> float:
        lines = [line for line in self.metrics.render().decode().splitlines() if line.startswith(f"vllm:{name}{{")]
        return float(lines[0].rsplit(" ", 1)[1])

    def run(self, body: Callable[[AsyncEngine], Awaitable[None]]) -> None:
        async def whole() -> None:
            self.engine.start()
            await self.engine.ready()
            try:
                await body(self.engine)
            finally:
                self.gate.set()
                await self.engine.shutdown()

        asyncio.run(asyncio.wait_for(whole(), 20))

    async def idle(self) -> None:
        while self.world.core.num_requests:
            await asyncio.sleep(0.005)
        self.world.check_empty()


@pytest.fixture
def fixture(monkeypatch: pytest.MonkeyPatch) -> Fixture:
    return Fixture(monkeypatch)


def ask(engine: AsyncEngine, name: str, max_tokens: int = 5, **params: Any) -> AsyncIterator[RequestOutput]:
    params.setdefault("temperature", 0)
    return engine.generate([72, 105], SamplingParams(max_tokens=max_tokens, output_kind=OutputKind.DELTA, **params), name)


async def collect(outputs: AsyncIterator[RequestOutput]) -> str:
    return "".join([o.outputs[0].text async for o in outputs])


def test_concurrent_requests_are_told_apart(fixture: Fixture) -> None:
    async def body(engine: AsyncEngine) -> None:
        texts = await asyncio.gather(*(collect(ask(engine, str(i), i + 1)) for i in range(12)))
        assert [len(t) for t in texts] == list(range(1, 13))
        assert engine.status.steps >= 12

    fixture.run(body)
    fixture.world.check_empty()


def test_text_prompts_are_tokenized_long_ones_too(fixture: Fixture) -> None:
    async def body(engine: AsyncEngine) -> None:
        params = SamplingParams(max_tokens=1, temperature=0)
        async for output in engine.generate("Hi", params, "short"):
            assert output.prompt == "Hi"
            assert len(output.prompt_token_ids) == 2
        with pytest.raises(RequestError, match="5000"):
            await collect(engine.generate("x" * 5000, params, "long"))

    fixture.run(body)


def test_closing_the_iterator_and_cancelling_its_reader_abort_the_request(fixture: Fixture) -> None:
    async def body(engine: AsyncEngine) -> None:
        outputs = ask(engine, "closed", 300)
        await anext(outputs)
        await outputs.aclose()  # type: ignore[attr-defined]
        await fixture.idle()
        reader = asyncio.create_task(collect(ask(engine, "cancelled", 300)))
        while fixture.world.core.num_requests == 0:
            await asyncio.sleep(0.002)
        reader.cancel()
        await fixture.idle()
        assert {r.finish_reason for r in fixture.world.requests} == {"abort"}
        assert sum(r.generation_tokens for r in fixture.world.requests) < 600

    fixture.run(body)


def test_abort_by_id_ends_the_stream_with_that_reason(fixture: Fixture) -> None:
    async def body(engine: AsyncEngine) -> None:
        outputs = ask(engine, "a", 300)
        await anext(outputs)
        await engine.abort("a")
        last = [o async for o in outputs][-1]
        assert last.finished
        assert last.outputs[0].finish_reason == "abort"
        await fixture.idle()

    fixture.run(body)


def test_a_request_that_never_ran_can_be_aborted(fixture: Fixture) -> None:
    async def body(engine: AsyncEngine) -> None:
        fixture.gate.clear()
        first = asyncio.create_task(collect(ask(engine, "running", 3)))
        await asyncio.sleep(0.02)
        queued = asyncio.create_task(collect(ask(engine, "queued", 3)))
        await asyncio.sleep(0.02)
        queued.cancel()
        fixture.gate.set()
        assert await first == "xxx"
        await fixture.idle()

    fixture.run(body)


def test_a_failed_step_raises_for_its_request_and_the_engine_goes_on(fixture: Fixture) -> None:
    async def body(engine: AsyncEngine) -> None:
        fixture.world.runner.fail_when = lambda s: s.request.id == "bad"
        with pytest.raises(StepError, match="FloatingPointError"):
            await collect(ask(engine, "bad"))
        assert await collect(ask(engine, "good")) == "xxxxx"
        assert engine.is_ready

    fixture.run(body)


def test_a_dead_core_tells_waiting_and_later_requests_why(fixture: Fixture, monkeypatch: pytest.MonkeyPatch) -> None:
    async def body(engine: AsyncEngine) -> None:
        fixture.gate.clear()
        fixture.gate.set()
        outputs = ask(engine, "waiting", 50)
        await anext(outputs)
        fixture.gate.clear()
        assert fixture.gauge("num_requests_running") == 1
        waiting = asyncio.create_task(collect(outputs))

        def broken() -> None:
            raise MemoryError("injected")

        monkeypatch.setattr(fixture.world.core.scheduler, "schedule", broken)
        fixture.gate.set()
        with pytest.raises(EngineDeadError, match="injected"):
            await waiting
        with pytest.raises(EngineDeadError, match="injected"):
            await collect(ask(engine, "later"))
        assert engine.status.stage == "dead"
        assert "MemoryError" in str(engine.dead_reason)
        await asyncio.to_thread(engine._thread.join, 10)

    fixture.run(body)
    for gauge in ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc"):
        assert fixture.gauge(gauge) == 0, "a dead engine runs nothing"
    assert fixture.ended == 1


def test_shutdown_ends_what_runs_and_refuses_what_comes(fixture: Fixture) -> None:
    async def body(engine: AsyncEngine) -> None:
        outputs = ask(engine, "running", 300)
        await anext(outputs)
        await engine.shutdown()
        last = [o async for o in outputs][-1]
        assert last.outputs[0].finish_reason == "abort"
        with pytest.raises(EngineDeadError, match="shut down"):
            await collect(ask(engine, "later"))

    fixture.run(body)
    fixture.world.check_empty()
    assert fixture.gauge("num_requests_running") == 0
    assert fixture.ended == 1


def test_the_same_id_twice_is_refused_and_may_be_used_again_later(fixture: Fixture) -> None:
    async def body(engine: AsyncEngine) -> None:
        outputs = ask(engine, "a", 300)
        await anext(outputs)
        with pytest.raises(RequestError, match="in use"):
            await collect(ask(engine, "a"))
        await outputs.aclose()  # type: ignore[attr-defined]
        await fixture.idle()
        assert await collect(ask(engine, "a", 2)) == "xx"

    fixture.run(body)


def test_what_an_abandoned_request_still_says_never_reaches_a_later_one_of_its_id(fixture: Fixture) -> None:
    async def body(engine: AsyncEngine) -> None:
        outputs = ask(engine, "a", 300)
        await anext(outputs)
        fixture.gate.clear()
        await asyncio.sleep(0.02)  # a step of the first is under way
        await outputs.aclose()  # type: ignore[attr-defined]
        with pytest.raises(RequestError, match="in use"):
            await collect(ask(engine, "a", 2))
        fixture.gate.set()
        await fixture.idle()
        assert await collect(ask(engine, "a", 2)) == "xx"

    fixture.run(body)


@pytest.mark.parametrize("limit", [{"max_num_queued_reqs": 2}, {"max_num_queued_tokens": 4}])
def test_admission_is_refused_when_the_queue_is_full_and_opens_again(monkeypatch: pytest.MonkeyPatch, limit: dict[str, int]) -> None:
    fixture = Fixture(monkeypatch, **limit)

    async def body(engine: AsyncEngine) -> None:
        fixture.gate.clear()
        first = asyncio.create_task(collect(ask(engine, "running")))
        await asyncio.sleep(0.05)
        queued = [asyncio.create_task(collect(ask(engine, f"queued {i}"))) for i in range(2)]
        await asyncio.sleep(0.05)
        with pytest.raises(QueueFullError):
            await collect(ask(engine, "one too many"))
        fixture.gate.set()
        assert await asyncio.gather(first, *queued) == ["xxxxx"] * 3
        assert await collect(ask(engine, "later")) == "xxxxx"

    fixture.run(body)


def test_before_and_after_loading(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = AsyncEngine(EngineConfig(model="nowhere"))
    started, go = threading.Event(), threading.Event()

    def load(config: EngineConfig, on_stage: Callable[[str, float], None], observers: object) -> LoadedEngine:
        on_stage("loading", 0.5)
        started.set()
        go.wait(10)
        raise ArtifactError("no such model")

    monkeypatch.setattr(async_engine, "load_engine", load)

    async def body() -> None:
        engine.start()
        await asyncio.to_thread(started.wait, 10)
        assert (engine.status.stage, engine.status.progress) == ("loading", 0.5)
        with pytest.raises(LoadingError, match="50%"):
            await collect(ask(engine, "early"))
        go.set()
        with pytest.raises(EngineDeadError, match="no such model"):
            await engine.ready()
        assert engine.status.error == "no such model [artifact_invalid]"
        await engine.shutdown()

    asyncio.run(asyncio.wait_for(body(), 20))


def test_the_prefix_cache_is_reset_between_steps_and_only_while_nothing_runs(fixture: Fixture) -> None:
    async def body(engine: AsyncEngine) -> None:
        await collect(ask(engine, "first", 20))
        pool = fixture.world.kv.pool
        assert pool._by_hash
        running = ask(engine, "second", 300)
        await anext(running)
        assert not await engine.reset_prefix_cache()
        assert pool._by_hash
        await running.aclose()  # type: ignore[attr-defined]
        await fixture.idle()
        assert await engine.reset_prefix_cache()
        assert not pool._by_hash
        held = ask(engine, "third", 300)
        await anext(held)
        fixture.gate.clear()
        engine._commands.put(None)
        reset = asyncio.create_task(engine.reset_prefix_cache())
        await asyncio.sleep(0)
        assert engine.is_ready, "the command is behind the last one that is heard"
        fixture.gate.set()
        with pytest.raises(EngineDeadError):
            await reset

    fixture.run(body)
