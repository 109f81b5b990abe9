"""An engine over ranks that fail when they are told to: core, cache, threads and restarts are the product's."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from headway.engine import async_engine
from headway.engine.async_engine import AsyncEngine
from headway.engine.config import EngineConfig
from headway.engine.core import Observers
from headway.engine.distributed.rank_group import RankStatus
from headway.engine.loading import LoadedEngine
from headway.engine.recovery.back_off import BackOff
from headway.engine.recovery.restarts import Restarts
from headway.engine.step_plan import StepPlan
from headway.errors import RankError
from headway.telemetry.metrics import EngineMetrics
from tests.cases.scripted_model import ScriptedModel, scripted_parts, scripted_tokenizer

WHY = "killed by signal 9"


class ScriptedRanks:
    """Two of them; number 1 fails."""

    def __init__(self) -> None:
        self.failure: RankError | None = None
        self.closed = 0
        self._heard: list[Callable[[], None]] = []

    def watch(self, heard: Callable[[], None]) -> None:
        self._heard.append(heard)

    def status(self) -> tuple[RankStatus, ...]:
        return tuple(RankStatus(rank, "there", 4000 + rank, "up", 0.25) for rank in (0, 1))

    def close(self) -> None:
        self.closed += 1

    def fail(self, *, tell: bool = True) -> None:
        """`tell` False: whoever computes next finds it out."""
        self.failure = RankError(1, "there", WHY)
        for heard in self._heard if tell else ():
            heard()


class RankWorld:
    """`next_loads` are raised by the loads to come, one by one; `may_load`, when cleared, holds a load. From pass `stop_at` on, passes wait
    for `go`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, waits: tuple[float, ...] = (0.05,) * 5, **config: Any):
        self.model = ScriptedModel(scripted_tokenizer())
        self.model.say_bytes(b"x" * 400)
        self.model.before_pass = self._before_pass
        self.metrics = EngineMetrics("tiny", max_model_len=500)
        self.groups: list[ScriptedRanks] = []
        self.loaded: list[LoadedEngine] = []
        self.next_loads: list[Exception] = []
        self.may_load = threading.Event()
        self.may_load.set()
        self.stop_at = -1
        self.go = threading.Event()
        monkeypatch.setattr(async_engine, "load_engine", self._load)
        self.ended = 0
        observers = Observers(self.metrics.on_step, self.metrics.on_request, on_ranks=self.metrics.on_ranks, on_end=self._on_end)
        self.engine = AsyncEngine(EngineConfig("tiny", **config), observers)
        self.engine.restarts = Restarts(BackOff(waits, 600.0))

    @property
    def ranks(self) -> ScriptedRanks:
        return self.groups[-1]

    def start(self) -> None:
        self.engine.start()
        assert self.engine._ready.wait(60)

    def until(self, condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < deadline, self.engine.status
            time.sleep(0.002)

    def until_stage(self, stage: str) -> None:
        self.until(lambda: self.engine.status.stage == stage)

    def fail_in_a_pass(self) -> None:
        """The pass that waits, or the next one, raises."""
        self.ranks.fail(tell=False)
        self.go.set()

    def check_freed(self, number: int) -> None:
        """All of the engine that was loaded as that one was ended: no request, no block, no rank is left."""
        core = self.loaded[number].core
        assert core.num_requests == 0
        assert core.scheduler.kv.pool.num_free == core.scheduler.kv.pool.num_blocks - 1
        assert self.groups[number].closed >= 1

    def _load(self, config: EngineConfig, on_stage: Callable[[str, float], None] = lambda stage, progress: None, observers: object = None) -> LoadedEngine:
        on_stage("loading", 0.5)
        assert self.may_load.wait(60)
        if self.next_loads:
            raise self.next_loads.pop(0)
        self.groups.append(ScriptedRanks())
        self.loaded.append(scripted_parts(self.model, self.metrics, ranks=self.ranks))
        return self.loaded[-1]

    def _before_pass(self, plan: StepPlan) -> None:
        if 0 <= self.stop_at <= self.model.passes:
            assert self.go.wait(60)
        if self.ranks.failure is not None:
            raise self.ranks.failure

    def _on_end(self) -> None:
        self.ended += 1
