"""Deployments around scripted runtimes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from headway.router.config.document.document import Document
from headway.router.deployments.deployments import RuntimeDeployments
from headway.router.deployments.runtime_environment import RuntimeEnvironment
from headway.router.deployments.runtimes import Runtimes
from headway.router.deployments.tempo import Tempo
from headway.router.metrics.registry import RouterMetrics
from headway.router.request.deadline import Deadline

QUICK = Tempo(
    poll_loading=0.01, poll_ready=0.05, first_backoff=0.02, longest_backoff=0.04, good_run=60, grace=5, quick_window=30, first_pause=0.02,
    longest_pause=0.04, probe_timeout=1.0,
)  # fmt: skip
NOUL = {"type": "noul", "instructions": "Is it urgent?"}


def document(deployments: dict[str, Any], *, folder: Path | None = None, **catalog: Any) -> Document:
    return Document.of({"version": "v0.3", "global": {"model_catalog": {"deployments": deployments, **catalog}}}, folder)


def attached(endpoint: str, **more: Any) -> dict[str, Any]:
    return {"provider": "model_runtime", "endpoint": endpoint, **more}


@asynccontextmanager
async def deployed(
    deployments: dict[str, Any], *, used: tuple[str, ...] | None = None, ready: bool = True, cache: int = 0, key: str | None = None,
    tempo: Tempo = QUICK, **catalog: Any,
) -> AsyncIterator[RuntimeDeployments]:  # fmt: skip
    """Started, and by default every deployment ready."""
    runtimes = Runtimes(RouterMetrics(), RuntimeEnvironment(result_cache=cache, key=key), tempo)
    found = RuntimeDeployments(document(deployments, **catalog), runtimes, {})
    found.start(deployments.keys() if used is None else used)
    try:
        if ready:
            await until(lambda: all(pool.state.ready for pool in found.pools))
        yield found
    finally:
        await found.close()
        await runtimes.close()


def metrics(deployments: RuntimeDeployments) -> RouterMetrics:
    return deployments._runtimes.metrics


def soon(seconds: float = 5.0) -> Deadline:
    return Deadline.after(seconds)


async def until(condition: Callable[[], Any], seconds: float = 10.0) -> Any:
    async with asyncio.timeout(seconds):
        while not (found := condition()):
            await asyncio.sleep(0.002)
    return found


@contextlib.contextmanager
def asking(found: RuntimeDeployments) -> Any:
    participant = found.open(soon()).join()
    try:
        yield participant
    finally:
        participant.leave()


async def decide(found: RuntimeDeployments, name: str = "judge", state: Any = "text") -> Any:
    with asking(found) as calls:
        return await calls.decide(name, NOUL, state)
