"""When a server gives memory back."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from headway.server import memory_care
from headway.server.memory_care import HELD_BYTES, LOOK_SECONDS, give_memory_back
from tests.server.scripted_engine import Status

START = 1000 << 20
TRIMMED = 10 << 20  # what stays resident of each growth


def test_whenever_much_is_held_under_load_and_once_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look finds a quarter of the bound more; what is given back goes down to a little above the last time."""
    script = [Status("ready")] * 4 + [Status("ready", steps=step, requests=2) for step in range(1, 13)] + [Status("ready", steps=13)] * 3
    looks = iter(script)
    look, resident, left = 0, START, START
    released: list[tuple[int, int]] = []

    def status() -> Status:
        nonlocal look, resident
        now = next(looks, None)
        if now is None:
            raise asyncio.CancelledError
        look += 1
        if now.requests:
            resident += HELD_BYTES // 4 + 1
        return now

    def release() -> None:
        nonlocal resident, left
        released.append((look, resident - left))
        resident = left = left + TRIMMED

    async def sleep(seconds: float) -> None:
        assert seconds == LOOK_SECONDS

    async def run() -> None:
        monkeypatch.setattr(memory_care.asyncio, "sleep", sleep)
        with contextlib.suppress(asyncio.CancelledError):
            await give_memory_back(status, release, lambda: resident)

    asyncio.run(run())
    assert [at for at, _ in released] == [8, 12, 16, 17]  # nothing without steps, under load by memory, once when all is done
    assert all(HELD_BYTES < held < 1.3 * HELD_BYTES for _, held in released[:3])
