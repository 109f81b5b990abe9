"""Several processes, cards and nodes: splits, meeting, transport, Ray."""

from __future__ import annotations

from typing import Final

from headway.doctor.rules.distributed import (
    gpu_shares,
    infiniband,
    interfaces,
    nodes_differ,
    nodes_disagree,
    peer_access,
    rank_variables,
    ray_cluster,
    rendezvous,
    shared_memory,
    stage_memory,
    torchrun_threads,
    waiting_ranks,
)
from headway.doctor.rules.rule import Rule

_FILES: Final = (
    gpu_shares, rank_variables, rendezvous, interfaces, peer_access, shared_memory, ray_cluster, nodes_differ, waiting_ranks, infiniband,
    torchrun_threads, stage_memory, nodes_disagree,
)  # fmt: skip
RULES: Final[tuple[Rule, ...]] = tuple(sorted((rule for file in _FILES for rule in file.RULES), key=lambda rule: int(rule.id[1:])))
