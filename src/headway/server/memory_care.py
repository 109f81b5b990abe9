"""A server that was busy gives back the memory that it no longer needs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from headway.host.heap import release_free_memory
from headway.server.engine_port import StatusPort

LOOK_SECONDS = 5.0
BUSY_SECONDS = 30.0


async def give_memory_back(status: Callable[[], StatusPort], release: Callable[[], object] = release_free_memory) -> None:
    """Until cancelled: soon after the last request, and every `BUSY_SECONDS` under load, since what was given back costs
    time when it is needed again. Nothing while the engine makes no steps."""
    loop = asyncio.get_running_loop()
    released_at, steps = loop.time(), 0
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        now = status()
        if now.steps != steps and (not now.requests or loop.time() - released_at >= BUSY_SECONDS):
            await asyncio.to_thread(release)
            released_at, steps = loop.time(), now.steps
