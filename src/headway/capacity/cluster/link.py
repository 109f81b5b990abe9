"""Link: how long messages and collectives take, in the model of Hockney: latency + bytes / bandwidth for each message.

Costs of the collectives are those of Thakur, Rabenseifner and Gropp, "Optimization of Collective Communication Operations in MPICH" (2005),
without the time of the additions, which memory bandwidth hides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log2
from typing import Final, Literal

from headway.errors import ConfigError

Algorithm = Literal["ring", "tree", "best"]
ALGORITHMS: Final = ("ring", "tree", "best")


@dataclass(frozen=True, slots=True)
class Link:
    """`latency` in seconds of a message without content, `bandwidth` in bytes per second in one direction. `all_reduce`: what the library
    does; gloo goes around the ring, NCCL chooses ("best")."""

    latency: float
    bandwidth: float
    all_reduce: Algorithm = "best"
    origin: str = "given"

    def send(self, nbytes: float) -> float:
        """Seconds of one message."""
        return self.latency + nbytes / self.bandwidth

    def ring(self, nbytes: float, ranks: int) -> float:
        """All-reduce around a ring: 2 (p - 1) messages of n / p bytes. Needs the fewest bytes, and the most messages."""
        return 0.0 if ranks == 1 else 2 * (ranks - 1) * self.send(nbytes / ranks)

    def tree(self, nbytes: float, ranks: int) -> float:
        """All-reduce by recursive doubling: log2(p) messages of n bytes, rounded up."""
        return 0.0 if ranks == 1 else ceil(log2(ranks)) * self.send(nbytes)

    def all_reduce_seconds(self, nbytes: float, ranks: int) -> tuple[float, str]:
        """Seconds, and which algorithm that is."""
        costs = {"ring": self.ring(nbytes, ranks), "tree": self.tree(nbytes, ranks)}
        name = min(costs, key=lambda each: costs[each]) if self.all_reduce == "best" else self.all_reduce
        return costs[name], name

    def all_gather(self, nbytes: float, ranks: int) -> float:
        """`nbytes` is what everybody has in the end: p - 1 messages of n / p bytes around the ring."""
        return 0.0 if ranks == 1 else (ranks - 1) * self.send(nbytes / ranks)


def fitted_link(points: Sequence[tuple[float, float]], all_reduce: Algorithm, param: str) -> Link:
    """From (bytes, seconds) of single messages, by least squares of the relative errors. Raises ConfigError when they are no line that rises."""
    if len(points) < 2 or len({nbytes for nbytes, _ in points}) < 2:
        raise ConfigError(f"{param}.measured needs at least two sizes, found {len(points)} points", reason="cluster_invalid", param=param)
    # Minimize the sum of ((a + b n - t) / t)^2: weights 1 / t^2.
    weights = [1 / seconds**2 for _, seconds in points]
    total = sum(weights)
    mean_n = sum(w * n for w, (n, _) in zip(weights, points, strict=True)) / total
    mean_t = sum(w * t for w, (_, t) in zip(weights, points, strict=True)) / total
    spread = sum(w * (n - mean_n) ** 2 for w, (n, _) in zip(weights, points, strict=True))
    slope = sum(w * (n - mean_n) * (t - mean_t) for w, (n, t) in zip(weights, points, strict=True)) / spread
    if slope <= 0:
        raise ConfigError(f"{param}.measured: larger messages must take longer", reason="cluster_invalid", param=param)
    return Link(max(0.0, mean_t - slope * mean_n), 1 / slope, all_reduce, "measured")
