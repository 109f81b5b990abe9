"""WorkerState: how one replica is, in the words of the inventory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

State: TypeAlias = Literal[
    "starting", "downloading", "loading", "warming", "ready", "degraded", "failed", "unreachable", "missing", "restarting", "backoff",
    "incompatible", "stopped", "unavailable",
]  # fmt: skip
STATES: frozenset[str] = frozenset(State.__args__)  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class WorkerState:
    """`reason` in the words of the runtime, or of the router for what only it can see."""

    state: State = "starting"
    reason: str = ""

    @property
    def ready(self) -> bool:
        return self.state == "ready"


def told(status: str, reason: object) -> WorkerState:
    """What a runtime says of one of its models."""
    known = status if status in STATES else "unavailable"
    return WorkerState(known, "" if reason is None else str(reason)[:500])  # type: ignore[arg-type]
