"""RankHomes: where the ranks of a model live, and where rank 0 listens for them."""

from __future__ import annotations

import logging
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from headway.engine.config import EngineConfig
from headway.engine.distributed.node_meeting import meet_nodes, topology_of

_log = logging.getLogger(__name__)
_HERE: Final = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class RankHomes:
    """As rank 0 knows them. `address`: of rank 0; `port` 0 = a free one; `hosts`: where each rank is reached by the others;
    `local`: the ranks, besides 0, that this host starts; the rest is started by commands on other nodes."""

    key: bytes
    address: str
    port: int
    hosts: tuple[str, ...]
    local: range


def rank_homes(config: EngineConfig, model: Path) -> RankHomes:
    """One node: all here. Several: meet them first. Raises LaunchError when they cannot start together."""
    topology = topology_of(config)
    if topology.nodes == 1:
        return RankHomes(secrets.token_bytes(32), _HERE, 0, (_HERE,) * topology.ranks, range(1, topology.ranks))
    _log.info("Waiting for %d nodes at %s:%d", topology.nodes - 1, topology.master_addr, topology.master_port)
    meeting = meet_nodes(config, model)
    for sentence in meeting.warnings:
        _log.warning("%s", sentence)
    hosts = tuple(meeting.addresses[topology.node_of_rank(rank)] for rank in range(topology.ranks))
    return RankHomes(meeting.key.secret, hosts[0], topology.master_port, hosts, range(1, topology.ranks_per_node))
