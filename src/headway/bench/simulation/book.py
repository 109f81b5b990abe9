"""Book: what is written down while a simulation runs."""

from __future__ import annotations

from array import array

from headway.bench.simulation.latency_histogram import LatencyHistogram


class Book:
    """Per request the moments of its first and last token (seconds; -1 = not yet), and sums over all replicas."""

    def __init__(self, requests: int):
        self.first = array("d", [-1.0]) * requests
        self.done = array("d", [-1.0]) * requests
        self.gaps = LatencyHistogram()
        self.steps = 0
        self.preemptions = 0
        self.prompt_tokens = 0  # computed, again after preemptions
        self.looked_up_tokens = 0
        self.cached_tokens = 0  # of these, found in the prefix cache
