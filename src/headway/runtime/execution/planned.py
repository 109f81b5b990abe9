"""drive: take a plan through the scheduler, round by round, for a caller on an event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from headway.runtime.execution.job import Job
from headway.runtime.execution.scheduler import Scheduler
from headway.runtime.plan import Plan
from headway.runtime.row import Outcome, Row

Elsewhere: TypeAlias = Callable[[Callable[[], Any]], Awaitable[Any]] | None
"""How long work is run off the event loop; None: it is short, and done at once."""


@dataclass(slots=True)
class Planned:
    """A plan whose first rows are known. `body` is set instead when it needed none. `work` is where its steps run."""

    plan: Plan
    rows: Sequence[Row] = ()
    body: dict[str, Any] | None = None
    job: Job | None = None
    tokenize_seconds: float = 0.0
    post_seconds: float = 0.0
    work: Elsewhere = None
    _round: asyncio.Future[None] | None = field(default=None, repr=False)

    @property
    def queue_seconds(self) -> float:
        return self.job.queue_seconds if self.job else 0.0

    @property
    def forward_seconds(self) -> float:
        return self.job.forward_seconds if self.job else 0.0


async def begin(plan: Plan, work: Elsewhere = None) -> Planned:
    """Validate, render and tokenize: up to the first rows. Raises RequestError."""
    began = time.perf_counter()
    planned = Planned(plan, work=work)
    rows, body = await _step(plan, None, work)
    planned.rows, planned.body = rows, body
    planned.tokenize_seconds = time.perf_counter() - began
    return planned


def submit(scheduler: Scheduler, group: Sequence[Planned], arrived: float, deadlines: Sequence[float | None]) -> None:
    """Admit all plans or none. Raises QueueFullError, or the error of a scheduler that is closed."""
    loop = asyncio.get_running_loop()
    entering = []
    for planned, deadline in zip(group, deadlines, strict=True):
        if planned.body is None:
            planned._round = loop.create_future()
            planned.job = Job(arrived, _waker(loop, planned), deadline)
            entering.append((planned.job, planned.rows))
    if entering:
        scheduler.submit(entering)


async def finish(scheduler: Scheduler, planned: Planned) -> dict[str, Any]:
    """All rounds of a plan that was submitted, until it has its body. Cancelling it gives the job up.

    Raises StepError, or the error of a scheduler that closes.
    """
    try:
        while planned.body is None:
            job, waiting = planned.job, planned._round
            assert job is not None
            assert waiting is not None
            await waiting
            if job.error is not None:
                raise job.error
            began = time.perf_counter()
            rows, planned.body = await _step(planned.plan, job.outcomes, planned.work)
            planned.post_seconds += time.perf_counter() - began
            if planned.body is None:
                planned._round = asyncio.get_running_loop().create_future()
                scheduler.next_round(job, rows)
        return planned.body
    finally:
        if planned.job is not None:
            scheduler.finish(planned.job)
        if planned.work is None:  # else a step may still run on its thread
            planned.plan.close()


async def _step(plan: Plan, outcomes: list[Outcome] | None, work: Elsewhere) -> tuple[Sequence[Row], dict[str, Any] | None]:
    def advance() -> tuple[Sequence[Row], dict[str, Any] | None]:
        try:
            return (next(plan) if outcomes is None else plan.send(outcomes)), None
        except StopIteration as done:
            return (), done.value

    if work is None:
        return advance()
    stepped: tuple[Sequence[Row], dict[str, Any] | None] = await work(advance)
    return stepped


def _waker(loop: asyncio.AbstractEventLoop, planned: Planned) -> Callable[[Job], None]:
    def done() -> None:
        if planned._round is not None and not planned._round.done():
            planned._round.set_result(None)

    def wake(job: Job) -> None:
        try:
            here = asyncio.get_running_loop() is loop
        except RuntimeError:
            here = False
        if here:
            done()
        elif not loop.is_closed():
            loop.call_soon_threadsafe(done)

    return wake
