"""Before several nodes start together: who they are, what they must have in common, and the comparison of it."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from headway.distributed.cluster_key import ClusterKey, cluster_key
from headway.distributed.node_facts import NodeFacts, gather_facts
from headway.distributed.preflight_exchange import check_nodes
from headway.distributed.topology import Topology
from headway.engine.config import EngineConfig

MEET_SECONDS: Final = 300.0
"""How long nodes wait for each other at least: some start later, or have to fetch the model first."""

# Fields that decide what every rank computes; the rest is told to the others by rank 0, or matters to one node only.
_COMMON: Final = (
    "model", "revision", "load_format", "model_impl", "hf_overrides", "dtype", "quantization", "max_model_len", "batch_invariant", "block_size", "kv_cache_dtype",
    "enable_lora", "max_lora_rank", "lora_dtype",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class NodeMeeting:
    """`addresses`: where each node is reached, by its number. `warnings` are sentences for the log."""

    topology: Topology
    key: ClusterKey
    addresses: Mapping[int, str]
    warnings: tuple[str, ...]


def meet_nodes(config: EngineConfig, model: Path, environment: Mapping[str, str] = os.environ) -> NodeMeeting:
    """Compare this node with all others; blocks until they came, at most MEET_SECONDS or `distributed_timeout_seconds` if that is more.

    Raises LaunchError, on every node, when something would hang or answer wrongly; ConfigError (`key_too_short`).
    """
    topology = topology_of(config)
    key = cluster_key(topology.master_port, environment)
    facts = node_facts(config, model, environment)
    patient = dataclasses.replace(topology, timeout_seconds=max(MEET_SECONDS, topology.timeout_seconds))
    checked = check_nodes(patient, facts, key)
    return NodeMeeting(topology, key, checked.addresses, tuple(f"{one.sentence}. {one.fix}" for one in checked.warnings))


def node_facts(config: EngineConfig, model: Path | None, environment: Mapping[str, str] = os.environ) -> NodeFacts:
    """What this node tells the others."""
    common = {f"--{name.replace('_', '-')}": getattr(config, name) for name in _COMMON}
    return gather_facts(topology_of(config), model, common, environment)


def topology_of(config: EngineConfig) -> Topology:
    """The places that the configuration describes; launchers' variables have become fields of it before."""
    return Topology(
        tensor=config.tensor_parallel_size, pipeline=config.pipeline_parallel_size, data=1, nodes=config.nnodes, node_rank=config.node_rank,
        master_addr=config.master_addr, master_port=config.master_port, timeout_seconds=config.distributed_timeout_seconds,
        source="flags" if config.nnodes > 1 else "single",
    )  # fmt: skip
