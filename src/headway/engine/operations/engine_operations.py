"""EngineOperations: what an operator asks of an AsyncEngine. Lives on the event loop; the work is done between two steps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Literal, Protocol, TypeVar, get_args

from headway.engine.config import EngineConfig
from headway.engine.core import EngineCore
from headway.engine.operations.gate import Gate
from headway.engine.operations.prefix_reset import reset_prefix_cache, restart_running
from headway.engine.operations.profile import ProfileRun
from headway.engine.operations.sleep import TAGS, Sleep, bring_back, check_tags, fall_asleep, require_sleep_mode
from headway.errors import RequestError

T = TypeVar("T")
Mode = Literal["abort", "wait", "keep"]
MODES: Final[tuple[Mode, ...]] = get_args(Mode)
_POLL_SECONDS: Final = 0.02


class Steered(Protocol):
    """The engine, as far as operations need it."""

    @property
    def config(self) -> EngineConfig: ...

    @property
    def gate(self) -> Gate: ...

    @property
    def request_ids(self) -> list[str]: ...

    async def between_steps(self, act: Callable[[EngineCore], T]) -> T: ...

    def abort_all(self, core: EngineCore) -> None: ...

    async def abort(self, request_id: str) -> None: ...

    def reload(self) -> None: ...


class EngineOperations:
    """Modes say what becomes of requests in flight: `abort` ends them, `wait` lets them end, `keep` leaves them where they are."""

    def __init__(self, engine: Steered):
        self._engine = engine
        self._gate = engine.gate
        self._profile = ProfileRun(engine.config.profiler_config)
        self._sleep: Sleep | None = None
        self._changing = asyncio.Lock()

    @property
    def sleep_level(self) -> int | None:
        """None while awake."""
        return None if self._sleep is None else self._sleep.level

    @property
    def is_paused(self) -> bool:
        return self._gate.held is not None

    async def pause(self, mode: Mode = "abort", *, clear_cache: bool = True) -> None:
        """Make no more steps when this returns; requests that come wait in front of the engine. With `keep` the cache stays, since what is
        kept stands on it."""
        self._gate.paused = True
        if not await self._settle(mode, lambda: self._gate.paused):
            return
        self._gate.closed = True
        await self._engine.between_steps(lambda core: clear_cache and mode != "keep" and reset_prefix_cache(core, offloaded=True))

    async def resume(self) -> None:
        """Go on after `pause`. A sleeping engine sleeps on."""
        self._gate.paused = False
        await self._reopen()

    async def sleep(self, level: int = 1, mode: Mode = "abort") -> None:
        """Give memory back: the KV cache, and the weights, which level 1 keeps in a file and level 2 forgets. Requests are refused until
        `wake_up`; those that `keep` left are computed again then. An engine that sleeps sleeps on.

        Raises ConfigError without --enable-sleep-mode, RequestError, CapacityError; the engine is awake then.
        """
        self._check_sleep(level, mode)
        async with self._changing:
            if self._sleep is not None:
                return
            self._gate.asleep = True
            try:
                await self._settle(mode, lambda: True)
                self._gate.closed = True
                self._sleep = await self._engine.between_steps(lambda core: _sleep_now(core, level))
            except BaseException:
                self._gate.asleep = False
                await self._reopen()
                raise

    async def wake_up(self, tags: Sequence[str] = TAGS) -> None:
        """Bring the parts named by `tags` back; when all are, requests are taken again. Raises RequestError for other tags, and whatever
        loading raises; the engine then still sleeps."""
        check_tags(tags)
        async with self._changing:
            sleep = self._sleep
            if sleep is None:
                return
            if await self._engine.between_steps(lambda core: bring_back(sleep, tags, self._engine.reload)):
                self._sleep = None
                self._gate.asleep = False
                await self._reopen()

    def forget_sleep(self) -> None:
        """On the engine's thread, before a whole engine is loaded again: it will be awake. A pause stays."""
        self._sleep, self._gate.asleep = None, False
        self._gate.closed = self._gate.paused

    async def reset_prefix_cache(self, *, running: bool = False, offloaded: bool = False) -> bool:
        """See `prefix_reset`."""
        return await self._engine.between_steps(lambda core: reset_prefix_cache(core, running=running, offloaded=offloaded))

    async def abort_requests(self, ids: Sequence[str]) -> int:
        """End the requests whose answers carry these ids, all for an empty list; returns how many were found."""
        wanted = tuple(f"{each}-" for each in ids)  # an answer may be several requests of the engine, which add to its id
        found = [each for each in self._engine.request_ids if not ids or each in ids or each.startswith(wanted)]
        for each in found:
            await self._engine.abort(each)
        return len(found)

    async def start_profile(self) -> None:
        await self._engine.between_steps(lambda core: self._profile.start())

    async def stop_profile(self) -> Path:
        return await self._engine.between_steps(lambda core: self._profile.stop())

    def _check_sleep(self, level: int, mode: Mode) -> None:
        require_sleep_mode(self._engine.config, level)
        if level == 2 and mode == "keep":
            raise RequestError("level 2 forgets the whole engine, so requests cannot be kept", param="mode", fix="Use level 1, or another mode.")

    async def _settle(self, mode: Mode, still_wanted: Callable[[], bool]) -> bool:
        """Until requests in flight are as `mode` says; False when nobody wants that any more."""
        if mode == "abort":
            await self._engine.between_steps(self._engine.abort_all)
        while mode == "wait" and await self._engine.between_steps(lambda core: core.num_requests > 0):
            if self._gate.closed:
                raise RequestError("a paused engine finishes nothing", param="mode", fix="POST /resume first, or use another mode.")
            if not still_wanted():
                return False
            await asyncio.sleep(_POLL_SECONDS)
        return still_wanted()

    async def _reopen(self) -> None:
        self._gate.closed = self._gate.paused or self._gate.asleep
        await self._engine.between_steps(lambda core: None)  # so that a thread that waits for commands looks


def _sleep_now(core: EngineCore, level: int) -> Sleep:
    restart_running(core)
    return fall_asleep(core, level)
