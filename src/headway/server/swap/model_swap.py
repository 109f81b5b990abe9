"""ModelSwap: the next engine loads beside the one that serves, takes its place, and the old one ends after its last request."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from headway.engine.config import EngineConfig
from headway.errors import EngineDeadError, HeadwayError
from headway.host.heap import release_free_memory
from headway.server.served_engine import ServedEngine
from headway.server.state import ServerState

if TYPE_CHECKING:
    from headway.engine.async_engine import AsyncEngine

_log = logging.getLogger(__name__)
_POLL_SECONDS: Final = 0.05
_STOP_SECONDS: Final = 5.0
_QUIET_LOOKS: Final = 20  # so often in a row nobody must be there before an engine ends: work may pass from a request to a task


@dataclass(frozen=True, slots=True)
class Swapped:
    """What a swap did: model references, and seconds from the order to the first request that may begin with the new model."""

    model: str
    previous: str
    seconds: float


class ModelSwap:
    """`start` begins to load an engine; `on_ready` is told of one before it serves. Lives on the server's event loop."""

    def __init__(
        self, state: ServerState, start: Callable[[EngineConfig], Awaitable[AsyncEngine]], on_ready: Callable[[AsyncEngine], None]
    ):
        self._state = state
        self._start = start
        self._on_ready = on_ready
        self._loading: AsyncEngine | None = None
        self._target: str | None = None  # the model that is being brought
        self._last_error: str | None = None
        self._retiring: dict[asyncio.Task[None], AsyncEngine] = {}
        self._swapping: asyncio.Task[Swapped] | None = None

    def look(self) -> dict[str, object]:
        """What is going on, as JSON: `state` is idle, loading or failed (the last swap; the model before it serves)."""
        seen: dict[str, object] = {"model": self._state.serving.engine.config.model, "retiring": len(self._retiring)}
        if self._target is None:
            failed = {} if self._last_error is None else {"error": self._last_error}
            return {"state": "failed" if failed else "idle", **seen, **failed}
        seen |= {"next": self._target}
        if self._loading is not None:
            status = self._loading.status
            seen |= {"stage": status.stage, "progress": round(status.progress, 4)}
        return {"state": "loading", **seen}

    async def to(self, config: EngineConfig) -> Swapped:
        """Load `config` and let it serve. What fails leaves everything as it is; a caller that leaves stops nothing.

        Raises HeadwayError: `swap_in_progress`, `does_not_fit` with the numbers, `swap_failed` with the cause.
        """
        if self._target is not None:
            raise HeadwayError(
                f"a swap to {self._target} is going on", reason="swap_in_progress", fix="GET /swap_model tells how far it is."
            )
        self._target, self._last_error = config.model, None
        swapping = self._swapping = asyncio.create_task(self._bring(config))
        swapping.add_done_callback(self._swapped)
        return await asyncio.shield(swapping)

    def _swapped(self, task: asyncio.Task[Swapped]) -> None:
        self._swapping = None
        if not task.cancelled():
            task.exception()  # the caller may have left; the log has it

    async def close(self) -> None:
        """End what loads and what retires; for the end of the server."""
        for task, engine in list(self._retiring.items()):
            task.cancel()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(engine.shutdown(), _STOP_SECONDS)
        if self._swapping is not None:
            self._swapping.cancel()  # a thread that loads is left to the end of the process

    async def _bring(self, config: EngineConfig) -> Swapped:
        began = time.monotonic()
        try:
            engine = self._loading = await self._start(config)
            try:
                await engine.ready()
            except EngineDeadError as error:
                raise _failed(config.model, engine.failure or error) from None
            self._on_ready(engine)
            before = self._state.serve(engine)
        except Exception as error:
            self._last_error = error.message if isinstance(error, HeadwayError) else type(error).__name__
            _log.error("The model was not swapped: %s", self._last_error)
            raise
        finally:
            self._target = self._loading = None
            if self._last_error is not None:
                _give_memory_back()
        seconds = time.monotonic() - began
        old = before.engine
        _log.info("%s serves instead of %s, after %.2f s", config.model, old.config.model, seconds)
        self._retire(before)
        return Swapped(config.model, old.config.model, seconds)

    def _retire(self, served: ServedEngine) -> None:
        engine: AsyncEngine = served.engine  # type: ignore[assignment]  # what was swapped out was swapped in or started by `start`
        task = asyncio.create_task(_end_after_last(served, engine))
        self._retiring[task] = engine
        task.add_done_callback(lambda done: self._retiring.pop(done, None))


async def _end_after_last(served: ServedEngine, engine: AsyncEngine) -> None:
    """What is paused, or kept asleep, goes on, so that it ends."""
    with contextlib.suppress(HeadwayError):
        if engine.status.requests:
            await engine.operations.wake_up()
        await engine.operations.resume()
    quiet = 0
    while quiet < _QUIET_LOOKS and engine.status.stage == "ready":
        await asyncio.sleep(_POLL_SECONDS)
        quiet = 0 if served.requests or engine.status.requests else quiet + 1
    await engine.shutdown()
    _log.info("%s ended after its last request", engine.config.model)
    asyncio.get_running_loop().call_later(_POLL_SECONDS, _give_memory_back)


def _give_memory_back() -> None:
    """An engine is a circle of objects; its memory is free when they were found."""
    gc.collect()
    release_free_memory()


def _failed(model: str, cause: HeadwayError) -> HeadwayError:
    reason = cause.reason if cause.reason in ("does_not_fit", "no_memory_for_kv") else "swap_failed"
    return HeadwayError(f"{model} was not loaded, the model before it goes on: {cause.message}", reason=reason, param=cause.param)
