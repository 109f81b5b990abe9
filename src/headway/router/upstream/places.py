"""Places: how many requests one backend has at a time, and who waits for the next free one."""

from __future__ import annotations

import asyncio

from headway.router.upstream.exchange import TryError
from headway.router.upstream.health import BackendState


async def take_place(state: BackendState, most: int, most_waiting: int, seconds: float) -> None:
    """First come, first served. `most` is remembered: a reload may change it, also for those who wait.

    Raises TryError `queue_full` when so many wait already, `queue_timeout` after `seconds` (inf: never) without a place.
    """
    state.most = most
    _give(state)
    if state.has_place:
        state.in_flight += 1
        return
    if len(state.waiting) >= most_waiting:
        raise TryError("queue_full")
    place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    state.waiting.append(place)
    try:
        async with asyncio.timeout(None if seconds == float("inf") else seconds):
            await place
    except BaseException as error:
        if place.done() and not place.cancelled():
            leave_place(state)  # it came in the moment in which nobody wanted it any more
        else:
            state.waiting.remove(place)
        if isinstance(error, TimeoutError):
            raise TryError("queue_timeout") from None
        raise


def leave_place(state: BackendState) -> None:
    state.in_flight -= 1
    _give(state)


def _give(state: BackendState) -> None:
    """A place that is given counts as taken at once, so that nobody who comes meanwhile gets it."""
    while state.waiting and state.in_flight < state.most:
        place = state.waiting.popleft()
        if not place.done():
            place.set_result(None)
            state.in_flight += 1
