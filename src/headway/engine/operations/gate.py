"""Gate: whether requests may come in, and whether the engine makes steps."""

from __future__ import annotations

from dataclasses import dataclass

from headway.errors import AsleepError


@dataclass(slots=True)
class Gate:
    """Written on the event loop, read on both sides.

    `paused`: new requests wait in front of the engine. `asleep`: they are refused. `closed`: no step is made.
    """

    paused: bool = False
    asleep: bool = False
    closed: bool = False

    @property
    def held(self) -> str | None:
        """Why nothing moves although requests may be there: asleep or paused; None = it moves."""
        return "asleep" if self.asleep else "paused" if self.paused else None

    def require_awake(self) -> None:
        if self.asleep:
            raise AsleepError("The engine sleeps", fix="POST /wake_up wakes it.")
