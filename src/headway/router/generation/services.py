"""Services: what outlives a generation. One object for the process, made at its start."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from headway.router.metrics.registry import RouterMetrics


@dataclass(slots=True)
class Services:
    """Owners add their stores here, each made once: response cache, replays, vectors, latencies, spend, runtimes, the client session.

    `state` is a folder (0700) for files that outlive the process: configuration versions, replays, spend.
    """

    state: Path
    metrics: RouterMetrics = field(default_factory=RouterMetrics)
