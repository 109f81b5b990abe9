"""Where `headway serve` stands among several nodes: flags and the variables of launchers, as fields of EngineConfig."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headway.cli.parse import Warn
from headway.distributed.launch_environment import LaunchFlags, read_launch


def launch_fields(given: Mapping[str, Any], environment: Mapping[str, str], warn: Warn) -> dict[str, Any]:
    """`given`: what was set by flags or the config file, by field. With several nodes, `warn` is told how they were found.

    Raises ConfigError (`launch_value`, `launch_incomplete`, `launch_contradiction`, `ranks_do_not_divide`).
    """
    flags = LaunchFlags(given.get("nnodes"), given.get("node_rank"), given.get("master_addr"), given.get("master_port"))
    launch = read_launch(flags, environment, tensor=given.get("tensor_parallel_size", 1), pipeline=given.get("pipeline_parallel_size", 1))
    topology = launch.topology
    if topology.nodes == 1:
        return {}
    warn(launch.sentence)
    return {
        "nnodes": topology.nodes,
        "node_rank": topology.node_rank,
        "master_addr": topology.master_addr,
        "master_port": topology.master_port,
    }
