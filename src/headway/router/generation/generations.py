"""Generations: the one that answers new requests, and older ones that requests still use."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager

from headway.errors import HeadwayError
from headway.router.generation.generation import Generation

_log = logging.getLogger(__name__)


class NotReadyError(HeadwayError):
    """The first configuration is still being prepared."""

    reason = "not_ready"


class Generations:
    """For one event loop. A request holds `use()` from its head to the end of its answer, streams included; a generation that was replaced is
    closed when its last request has ended."""

    def __init__(self) -> None:
        self._current: Generation | None = None
        self._uses: dict[int, int] = {}
        self._retired: dict[int, Generation] = {}
        self._closing: set[asyncio.Task[None]] = set()

    @property
    def is_ready(self) -> bool:
        return self._current is not None

    @property
    def current(self) -> Generation:
        """Raises NotReadyError before the first generation serves. For looks without waiting: whoever awaits needs `use`."""
        if self._current is None:
            raise NotReadyError("the router is still preparing its configuration", fix="See /startup-status on the management address.")
        return self._current

    @property
    def retired(self) -> int:
        """How many replaced generations requests still use."""
        return len(self._retired)

    @contextmanager
    def use(self) -> Iterator[Generation]:
        """The current generation, kept open while the context is. Raises NotReadyError."""
        generation = self.current
        number = generation.number
        self._uses[number] = self._uses.get(number, 0) + 1
        try:
            yield generation
        finally:
            self._uses[number] -= 1
            if self._uses[number] == 0:
                del self._uses[number]
                self._close_if_retired(number)

    def swap(self, generation: Generation) -> None:
        """From now on new requests use `generation`."""
        before, self._current = self._current, generation
        if before is not None:
            self._retired[before.number] = before
            if before.number not in self._uses:
                self._close_if_retired(before.number)

    async def close(self) -> None:
        """Close everything. For the end of the process, when no request runs any more."""
        if self._current is not None:
            self._retired[self._current.number] = self._current
            self._current = None
        for number in list(self._retired):
            self._close_if_retired(number)
        await asyncio.gather(*self._closing)

    def _close_if_retired(self, number: int) -> None:
        generation = self._retired.pop(number, None)
        if generation is not None:
            task = asyncio.get_running_loop().create_task(_close(generation))
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)


async def _close(generation: Generation) -> None:
    try:
        await generation.upstreams.close()
        await generation.deployments.close()
    except Exception:
        _log.exception("generation %d did not close cleanly", generation.number)
    else:
        _log.debug("generation %d is closed", generation.number)
