"""What Ray says of the nodes of a cluster."""

from __future__ import annotations

import os
from dataclasses import dataclass

from headway.compose.ray_node import ray_variables, require_ray
from headway.errors import LaunchError


@dataclass(frozen=True, slots=True)
class RayNodeStatus:
    """Totals of one node; `memory_bytes` is what Ray may give to tasks."""

    node_id: str
    address: str
    alive: bool
    cpus: float
    gpus: float
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class RayStatus:
    address: str
    nodes: tuple[RayNodeStatus, ...]
    free_cpus: float
    free_gpus: float


def ray_status(address: str) -> RayStatus:
    """Ask the cluster at HOST:PORT; this machine has to be one of its nodes.

    Raises ConfigError (`ray_missing`, `key_missing`), LaunchError (`cluster_unreachable`).
    """
    require_ray()
    os.environ.update(ray_variables())  # Ray reads them when it is imported
    import ray

    try:
        ray.init(address=address, log_to_driver=False, logging_level="ERROR", configure_logging=False)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        raise LaunchError(
            f"no Ray cluster answers at {address}: {str(error).splitlines()[0][:200]}", reason="cluster_unreachable",
            fix="Is this machine a node of it (`headway cluster up --address`), and the key the same?",
        ) from None  # fmt: skip
    try:
        free = ray.available_resources()
        nodes = tuple(_status(node) for node in ray.nodes())
    finally:
        ray.shutdown()
    return RayStatus(address, nodes, float(free.get("CPU", 0)), float(free.get("GPU", 0)))


def _status(node: dict[str, object]) -> RayNodeStatus:
    found = node.get("Resources")
    resources = found if isinstance(found, dict) else {}
    return RayNodeStatus(
        str(node.get("NodeID", ""))[:12], str(node.get("NodeManagerAddress", "")), bool(node.get("Alive")), float(resources.get("CPU", 0)),
        float(resources.get("GPU", 0)), int(resources.get("memory", 0)),
    )  # fmt: skip
