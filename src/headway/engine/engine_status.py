"""EngineStatus: how far an AsyncEngine is, and what it has to do."""

from __future__ import annotations

from dataclasses import dataclass

from headway.engine.recovery.restart import Restart


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """`stage`: resolving, inspecting, loading, warming, ready, restarting, dead or stopped. `steps` grows while the engine works.

    `requests` have been taken and have not ended; of their sequences, as of the last step, some run and some wait.
    """

    stage: str
    progress: float
    error: str | None
    steps: int
    requests: int = 0
    running: int = 0
    waiting: int = 0
    kv_usage: float = 0.0  # fraction of KV blocks in use
    held: str | None = None  # asleep or paused: why no step is made
    restart: Restart | None = None  # at stage restarting
