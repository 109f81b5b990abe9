"""How a server ends: new requests are refused, what runs has a while, the rest gets an error."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Callable

from headway.errors import HeadwayError

_log = logging.getLogger(__name__)
SIGNALS = (signal.SIGINT, signal.SIGTERM)
_LAST_WORDS_SECONDS = 2.0  # for error frames to reach their clients
_POLL_SECONDS = 0.02
_ECHO_SECONDS = 1.0  # a signal to the whole process group comes twice when a supervisor passes it on as well


class Ending:
    """How far an application is with its end. Lives on one event loop; `load` counts API requests in flight."""

    def __init__(self) -> None:
        self.load = 0
        self.is_closing = False
        self._closing: asyncio.Future[None] | None = None

    @property
    def closing(self) -> asyncio.Future[None]:
        """Done when requests in flight must end."""
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_future()
        return self._closing

    def require_open(self) -> None:
        """Raises the error of a server that shuts down."""
        if self.is_closing:
            raise shutting_down()

    def refuse_new(self) -> None:
        """From now on every API request is answered with 503."""
        self.is_closing = True

    def end_all(self) -> None:
        """End the requests in flight with an error that says why."""
        self.is_closing = True
        if not self.closing.done():
            self.closing.set_result(None)


def shutting_down() -> HeadwayError:
    return HeadwayError(
        "The server is shutting down", reason="shutting_down", fix="Send the request to another server or later."
    )


def on_signals(stop: asyncio.Event, last_act: Callable[[], None]) -> None:
    """The first SIGINT or SIGTERM sets `stop`, one that comes later ends the process at once after `last_act`."""
    loop = asyncio.get_running_loop()
    first_at = 0.0

    def received(number: signal.Signals) -> None:
        nonlocal first_at
        if not stop.is_set():
            _log.info("received %s, shutting down", number.name)
            first_at = loop.time()
            stop.set()
        elif loop.time() - first_at > _ECHO_SECONDS:
            _log.warning("received %s again: ending at once", number.name)
            last_act()
            os._exit(128 + number)

    for number in SIGNALS:
        loop.add_signal_handler(number, received, number)


async def drain(state: Ending, seconds: float) -> None:
    """Refuse new requests, wait up to `seconds` for those that run, then end them with an error."""
    state.refuse_new()
    if state.load and seconds > 0:
        _log.info("waiting up to %g s for %d request(s)", seconds, state.load)
        await _until_idle(state, seconds)
    if state.load:
        _log.info("ending %d request(s)", state.load)
    state.end_all()
    await _until_idle(state, _LAST_WORDS_SECONDS)


async def _until_idle(state: Ending, seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while state.load:
                await asyncio.sleep(_POLL_SECONDS)
