"""Topology: how many ranks there are, on which node each of them lives, and where the nodes meet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Source = Literal["single", "flags", "variables", "torchrun"]


@dataclass(frozen=True, slots=True)
class Topology:
    """The places of one launch. Made by `launch_environment.read_launch`, which refuses what does not divide.

    A node is one launched command (`headway serve` once per host; under torchrun once per process). Each replica has
    `tensor * pipeline` ranks, spread over the nodes in blocks of equal length: rank = stage * tensor + part, as in
    vLLM, so that the parts of a stage stay together and only hidden states cross hosts where tensor <= ranks per node.
    """

    tensor: int
    pipeline: int
    data: int  # replicas of the model, each with ranks 0 .. ranks - 1
    nodes: int
    node_rank: int
    master_addr: str
    master_port: int  # where node 0 listens for the other nodes
    timeout_seconds: float
    source: Source

    @property
    def ranks(self) -> int:
        """Ranks of one replica."""
        return self.tensor * self.pipeline

    @property
    def ranks_per_node(self) -> int:
        return self.ranks // self.nodes

    @property
    def headless(self) -> bool:
        """True where this node only computes: rank 0 and the HTTP server are on node 0."""
        return self.node_rank > 0

    @property
    def local_ranks(self) -> range:
        """The ranks of this node."""
        return self.ranks_of_node(self.node_rank)

    def ranks_of_node(self, node: int) -> range:
        """The ranks of one replica on `node`, in [0, nodes)."""
        return range(node * self.ranks_per_node, (node + 1) * self.ranks_per_node)

    def node_of_rank(self, rank: int) -> int:
        return rank // self.ranks_per_node
