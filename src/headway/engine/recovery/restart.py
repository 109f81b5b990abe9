"""Restart: what is being done about a rank that failed, as it is told to people and programs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Restart:
    """`rank`, `host` and `why` are those of the failure that it began with. `starts_in`: seconds until attempt `attempt` of `attempts` begins,
    0 while it loads. `failed`: why the attempt before it came to nothing, None for the first one."""

    rank: int
    host: str
    why: str
    attempt: int
    attempts: int
    starts_in: float
    failed: str | None = None

    @property
    def message(self) -> str:
        begins = f"begins in {self.starts_in:.1f} s" if self.starts_in > 0 else "is loading"
        before = f" The one before it failed: {self.failed}." if self.failed else ""
        return f"The engine starts again, since rank {self.rank} on {self.host} failed: {self.why}. Attempt {self.attempt} of {self.attempts} {begins}.{before}"
