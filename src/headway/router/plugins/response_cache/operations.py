"""Steps of the response cache, counted and timed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from headway.router.metrics.registry import RouterMetrics


@dataclass(slots=True)
class Step:
    """`status`: hit, miss, success. A backend that is out of reach finds nothing, so that its look-ups count as misses."""

    status: str

    def found(self, something: object) -> None:
        self.status = "miss" if something is None else "hit"


@contextmanager
def step(metrics: RouterMetrics, backend: str, operation: Literal["lookup_exact", "lookup_semantic", "store"]) -> Iterator[Step]:
    running = Step("success" if operation == "store" else "miss")
    began = time.perf_counter()
    try:
        yield running
    except BaseException:
        running.status = "error"
        raise
    finally:
        labels = backend, operation, running.status
        metrics.count("llm_cache_operations", *labels)
        metrics.observe("llm_response_cache_operation_duration_seconds", time.perf_counter() - began, *labels)
