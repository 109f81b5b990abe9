"""A server gives back the memory that it no longer needs, while it is busy and when it has been."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import psutil

from headway.host.heap import release_free_memory
from headway.server.engine_port import StatusPort

LOOK_SECONDS = 0.5
HELD_BYTES = 48 << 20
"""Resident memory may grow by so much before free memory is given back: what was given back costs time when it is needed again."""


def _resident_bytes() -> int:
    return int(psutil.Process().memory_info().rss)


async def give_memory_back(
    status: Callable[[], StatusPort], release: Callable[[], object] = release_free_memory, resident: Callable[[], int] = _resident_bytes
) -> None:
    """Until cancelled: under load whenever `HELD_BYTES` more are resident than after the last time, and once after the last request.

    The bound is on memory and not on time, so that what freed blocks of ever other sizes leave behind never adds up. Nothing happens
    while the engine makes no steps.
    """
    left, steps = resident(), 0
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        now = status()
        if now.steps != steps and (not now.requests or resident() > left + HELD_BYTES):
            await asyncio.to_thread(release)
            left = resident()
            steps = now.steps
