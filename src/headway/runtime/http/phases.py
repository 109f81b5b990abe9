"""Phases: where the time of one request went, as the header `Server-Timing`."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from headway.runtime.execution.planned import Planned


@dataclass(slots=True)
class Phases:
    """Seconds. `queue` is all waiting for the device, before the first forward pass and between them."""

    began: float = field(default_factory=time.perf_counter)
    parse: float = 0.0
    tokenize: float = 0.0
    queue: float = 0.0
    forward: float = 0.0
    post: float = 0.0
    serialize: float = 0.0

    def take(self, planned: Planned) -> None:
        """The times of a plan that has ended, or got as far as it could."""
        self.tokenize = planned.tokenize_seconds
        self.queue, self.forward = planned.queue_seconds, planned.forward_seconds
        self.post = planned.post_seconds

    def header(self, total: float) -> str:
        """`total` from `began` until the answer is ready; milliseconds with three decimals."""
        return (
            f"parse;dur={self.parse * 1000:.3f}, tokenize;dur={self.tokenize * 1000:.3f}, queue;dur={self.queue * 1000:.3f}, "
            f"forward;dur={self.forward * 1000:.3f}, post;dur={self.post * 1000:.3f}, "
            f"serialize;dur={self.serialize * 1000:.3f}, total;dur={total * 1000:.3f}"
        )
