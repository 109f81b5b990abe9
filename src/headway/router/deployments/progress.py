"""What is told about deployments while the router waits for them, and afterwards."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from headway.router.deployments.pool import Pool

Report: TypeAlias = Callable[[str, tuple[Mapping[str, Any], ...]], None]
"""Gets the sentence for people, and `model_deployments[]`."""
_MOST_NAMED = 5


def waiting_message(pools: Sequence[Pool]) -> str:
    """`Waiting for Router-managed model deployments, 0 of 1 ready: NAME (ARTIFACT) loading`."""
    managed = [pool for pool in pools if pool.specification.managed]
    pending = [pool for pool in managed if pool.state.state != "ready"]
    each = [f"{pool.name} ({pool.specification.artifact}) {_slowest(pool)}" for pool in pending[:_MOST_NAMED]]
    more = [f"and {len(pending) - _MOST_NAMED} more"] if len(pending) > _MOST_NAMED else []
    if not managed:
        return "Preparing the configuration; it makes the router manage no models"
    head = f"Waiting for Router-managed model deployments, {len(managed) - len(pending)} of {len(managed)} ready"
    return f"{head}: {', '.join(each + more)}" if pending else head


def _slowest(pool: Pool) -> str:
    """The state of the first replica that is not ready."""
    return next((state.state for worker in pool.workers if not (state := pool.state_of(worker)).ready), "ready")


def states(pools: Sequence[Pool]) -> tuple[Mapping[str, Any], ...]:
    """`model_deployments[]` of `/startup-status`."""
    return tuple(
        {
            "name": pool.name, "artifact": pool.specification.artifact, "managed": pool.specification.managed,
            "state": pool.state.state, "ready": pool.ready, "reason": pool.state.reason,
        }
        for pool in pools
    )  # fmt: skip
