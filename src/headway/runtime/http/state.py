"""WorkerState: what all handlers of one worker share."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from headway.http.shutdown import Ending
from headway.runtime.execution.observer import ExecutionObserver
from headway.runtime.http.body_memory import BodyMemory
from headway.runtime.http.metrics import WorkerMetrics
from headway.runtime.served_model import ServedModels
from headway.runtime.settings import WorkerSettings
from headway.wire.limits import BodyLimits

T = TypeVar("T")
_PLANNING_THREADS = 2


class WorkerState(Ending):
    """Lives on one event loop. `plan_elsewhere` runs work off it."""

    def __init__(self, models: ServedModels, settings: WorkerSettings):
        super().__init__()
        self.models = models
        self.settings = settings
        self.http = settings.http()
        self.metrics = WorkerMetrics()
        self.limits = BodyLimits(self.http.max_request_bytes, self.http.max_json_depth)
        self.bodies = BodyMemory(self.http.max_request_bytes)
        self.started = time.time()
        self._pool = ThreadPoolExecutor(_PLANNING_THREADS, thread_name_prefix="planning")
        self.metrics.watch(models)

    def observer(self, name: str) -> ExecutionObserver:
        """What the scheduler of the model of that name reports to."""
        return self.metrics.of_model(name)

    def limits_for(self, max_bytes: int | None) -> BodyLimits:
        """Limits of a route that takes `max_bytes` unless the operator has set a limit."""
        is_default = self.settings.max_request_bytes == WorkerSettings.__dataclass_fields__["max_request_bytes"].default
        return BodyLimits(max_bytes, self.limits.max_depth) if max_bytes is not None and is_default else self.limits

    async def plan_elsewhere(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    @property
    def published_limits(self) -> dict[str, Any]:
        return {"max_bundle_tasks": self.settings.max_bundle_tasks, "max_request_bytes": self.limits.max_bytes}
