"""RankGroup: the processes of one model, as the engine sees them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from headway.errors import RankError


@dataclass(frozen=True, slots=True)
class RankStatus:
    """`state`: starting | loading | ready | failed | ended. `silent_seconds`: since it was last heard of."""

    rank: int
    host: str
    pid: int
    state: str
    silent_seconds: float


class RankGroup(Protocol):
    """Made by `start_ranks`."""

    @property
    def failure(self) -> RankError | None:
        """Why it can compute no more; it stays so."""
        ...

    def watch(self, heard: Callable[[], None]) -> None:
        """`heard` is called once, on another thread, when there is a failure; at once if there is one already."""
        ...

    def status(self) -> tuple[RankStatus, ...]:
        """Of all ranks, rank 0 included."""
        ...

    def close(self) -> None:
        """End the processes. Idempotent; returns within seconds."""
        ...
