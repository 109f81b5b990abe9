"""simulate: a trace over a fleet of equal replicas, event by event."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from headway.bench.simulation.book import Book
from headway.bench.simulation.job import Job
from headway.bench.simulation.placement import PLACEMENTS
from headway.bench.simulation.replica import Replica
from headway.bench.simulation.replica_limits import ReplicaLimits
from headway.bench.simulation.request_trace import RequestTrace
from headway.bench.simulation.step_times import StepTimes, StepWork
from headway.errors import ConfigError

MOST_REPLICAS: Final = 10_000
_TOLD_EVERY: Final = 1000  # requests


@dataclass(frozen=True, slots=True)
class Fleet:
    """`replicas` engines with the same limits and step times, and how requests find them (a key of `PLACEMENTS`)."""

    times: StepTimes
    limits: ReplicaLimits
    replicas: int = 1
    placement: str = "round-robin"
    seed: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.replicas <= MOST_REPLICAS:
            raise ConfigError(f"--replicas must be from 1 to {MOST_REPLICAS:,}, found {self.replicas:,}", param="replicas")
        if self.placement not in PLACEMENTS:
            raise ConfigError(f"--placement knows {', '.join(PLACEMENTS)}, found {self.placement!r:.40}", param="placement")


@dataclass(frozen=True, slots=True, eq=False)
class Replay:
    """`book`: what happened. `busy`: seconds of steps of each replica. `refused`: requests that no replica can hold. `end`: the moment of the last
    token, from the first arrival."""

    book: Book
    busy: list[float]
    refused: int
    end: float


def simulate(trace: RequestTrace, fleet: Fleet, on_progress: Callable[[int], None] = lambda arrived: None) -> Replay:
    """Arrivals at the moment of a step's end are seen by the next step. The same input gives the same result."""
    book = Book(len(trace))
    limits = fleet.limits
    base = [fleet.times.seconds(StepWork(decode_rows=rows, sampled=rows)) for rows in range(limits.max_num_seqs + 1)]
    replicas = [Replica(limits, fleet.times, book, base) for _ in range(fleet.replicas)]
    placement = PLACEMENTS[fleet.placement](replicas, fleet.seed)
    due = [math.inf] * fleet.replicas
    events: list[tuple[float, int]] = []
    refused = 0

    def run_until(moment: float) -> None:
        while events and events[0][0] < moment:
            time, index = heapq.heappop(events)
            if due[index] != time:
                continue  # it was brought forward
            replica = replicas[index]
            before = replica.outstanding
            following = replica.advance(time)
            due[index] = math.inf if following is None else following
            if following is not None:
                heapq.heappush(events, (following, index))
            if replica.outstanding != before:
                placement.changed(index)

    columns = zip(trace.arrival.tolist(), trace.prompt.tolist(), trace.output.tolist(), trace.prefix.tolist(), trace.shared.tolist(), strict=True)
    for number, (now, prompt, output, prefix, shared) in enumerate(columns):
        run_until(now)
        job = Job(number, prompt, output, prefix, shared)
        if not replicas[0].fits(job):
            refused += 1
            continue
        index = placement.choose(prefix)
        soonest = replicas[index].arrive(job, now)
        placement.changed(index)
        if soonest is not None:
            due[index] = soonest
            heapq.heappush(events, (soonest, index))
        if number % _TOLD_EVERY == 0:
            on_progress(number)
    run_until(math.inf)
    on_progress(len(trace))
    return Replay(book, [replica.busy for replica in replicas], refused, max(book.done))
