"""When a server gives memory back."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from headway.server import memory_care
from headway.server.memory_care import give_memory_back
from tests.server.scripted_engine import Status


def test_soon_after_work_and_rarely_under_load(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock is that of a loop whose sleeps take no time."""
    now = 0.0
    times: list[float] = []
    script = {  # time -> status from then on
        0.0: Status("ready"), 20.0: Status("ready", steps=1, requests=2), 70.0: Status("ready", steps=9), 90.0: Status("ready", steps=10),
    }  # fmt: skip

    def status() -> Status:
        steps = now if script[max(t for t in script if t <= now)].requests else 0  # one more in each look while it works
        current = script[max(t for t in script if t <= now)]
        return Status("ready", steps=int(steps) or current.steps, requests=current.requests)

    async def run() -> None:
        real = asyncio.sleep

        async def sleep(seconds: float) -> None:
            nonlocal now
            now += seconds
            if now > 120:
                raise asyncio.CancelledError
            await real(0)

        monkeypatch.setattr(memory_care.asyncio, "sleep", sleep)
        monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now, raising=False)
        with contextlib.suppress(asyncio.CancelledError):
            await give_memory_back(status, lambda: times.append(now))

    asyncio.run(run())
    assert times == [30.0, 60.0, 70.0, 90.0]
