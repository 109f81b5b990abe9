"""Scheduler: admission, queue, forward passes and result cache of one model. See `forward_queue` for the policy."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

import numpy as np

from headway.errors import HeadwayError, StepError
from headway.http.shutdown import shutting_down
from headway.runtime.execution.admission import Admission
from headway.runtime.execution.device_thread import DeviceThread
from headway.runtime.execution.execution_settings import ExecutionSettings
from headway.runtime.execution.forward_queue import Batch, ForwardQueue
from headway.runtime.execution.job import Job
from headway.runtime.execution.observer import ExecutionObserver, Unobserved
from headway.runtime.execution.result_cache import ResultCache
from headway.runtime.loaded_model import LoadedModel
from headway.runtime.row import ItemFailure, Outcome, Row
from headway.telemetry.defect import describe_defect

_log = logging.getLogger(__name__)
_LATE = ItemFailure("deadline_exceeded", "the deadline passed before this was computed")
_NOT_FINITE = ItemFailure("invalid_model_output", "the model's output is not finite")


class Scheduler:
    """Used from any thread. A job is submitted, may ask for more rounds, and is finished exactly once by whoever submitted
    it, in whatever way its request ends.

    `on_failure` is told the exception of a forward pass that failed (is the device broken?).
    """

    def __init__(
        self,
        model: LoadedModel,
        settings: ExecutionSettings,
        device: DeviceThread,
        observer: ExecutionObserver | None = None,
        on_failure: Callable[[BaseException], None] = lambda error: None,
    ):
        self.settings = settings
        self.queue = ForwardQueue(settings)
        self.admission = Admission(settings.max_queue, settings.max_queued_tokens)
        self.is_running = False  # a forward pass of this model is going on
        self._model = model
        self._device = device
        self._cache = ResultCache(settings.result_cache_entries)
        self._observer: ExecutionObserver = observer or Unobserved()
        self._on_failure = on_failure
        self._is_closed = False
        device.attach(self)

    # ---- for requests ----------------------------------------------------------------------------------------------

    def submit(self, group: Sequence[tuple[Job, Sequence[Row]]]) -> None:
        """Begin the first round of all jobs, or of none. Raises QueueFullError, or the error of a closed scheduler."""
        now = time.perf_counter()
        tokens = [job.begin_round(rows, now) for job, rows in group]
        with self._device.changed:
            self._require_open()
            self.admission.admit(len(group), sum(tokens))
            for (job, _), count in zip(group, tokens, strict=True):
                job.is_admitted = True
                job.tokens = count
            done = [job for (job, _), count in zip(group, tokens, strict=True) if self._enqueue(job, count, now)]
        self._proceed(done)

    def next_round(self, job: Job, rows: Sequence[Row]) -> None:
        """Another round of a job that was submitted. Never refused for a full queue; raises when the scheduler is closed."""
        now = time.perf_counter()
        tokens = job.begin_round(rows, now)
        with self._device.changed:
            self._require_open()
            job.tokens += tokens
            self.admission.grow(tokens)
            done = [job] if self._enqueue(job, tokens, now) else []
        self._proceed(done)

    def finish(self, job: Job) -> None:
        """The job was answered or given up: it leaves queue and admission. Harmless when it has left already."""
        with self._device.changed:
            if job.is_admitted and not job.is_over:
                job.is_over = True
                self.queue.remove(job)
                self.admission.release(job.tokens)

    def close(self) -> None:
        """Refuse new jobs and answer those that wait with an error. A pass that is running ends, unheard."""
        with self._device.changed:
            self._is_closed = True
            left = list(self.queue.jobs)
            for job in left:
                self.queue.remove(job)
                job.error = shutting_down()
        for job in left:
            job.on_round(job)

    # ---- for the device thread -------------------------------------------------------------------------------------

    def run_pass(self, others_wait: bool) -> None:
        """One forward pass, on the calling thread, with what waits now; jobs that are too late leave before it."""
        began = time.perf_counter()
        with self._device.changed:
            if self.is_running:
                return
            late = self._give_up_late(began)
            batch = self.queue.take(others_wait) if len(self.queue) else None
            for job in batch.jobs() if batch else ():
                job.queue_seconds += began - job.round_began
            self.is_running = batch is not None
        for job in late:
            job.on_round(job)
        if batch is not None:
            for job in self._run(batch, began):
                job.on_round(job)

    # ---- inside ----------------------------------------------------------------------------------------------------

    def _require_open(self) -> None:
        if self._is_closed:
            raise shutting_down()

    def _enqueue(self, job: Job, tokens: int, now: float) -> bool:
        """Whether the round is complete as it is: nothing to compute, all of it cached, or too late."""
        if job.deadline is not None and now >= job.deadline:
            self._fail_rows(job)
            return True
        if self._cache.is_on and job.waiting:
            tokens -= self._give_cached(job)
        if job.is_round_done:
            return True
        self.queue.add(job, now, tokens)
        if self._model.uses_device_thread:
            self._device.changed.notify()
        return False

    def _give_cached(self, job: Job) -> int:
        """Outcomes that are known already; returns the tokens that they save."""
        saved = 0
        rows = list(job.waiting.items())
        for key, row in rows:
            outcome = self._cache.get(key)
            if outcome is not None:
                saved += row.cost
                job.give(key, outcome)
        self._observer.on_cache(hits=len(rows) - len(job.waiting), misses=len(job.waiting))
        return saved

    def _proceed(self, done: Sequence[Job]) -> None:
        """Answer what is complete; compute the rest here where the model allows it."""
        for job in done:
            job.on_round(job)
        if self._model.uses_device_thread:
            return
        while len(self.queue) and not self.is_running:  # who is running now looks again afterwards
            self.run_pass(others_wait=False)

    def _give_up_late(self, now: float) -> list[Job]:
        late = self.queue.late(now)
        for job in late:
            self.queue.remove(job)
            job.queue_seconds += now - job.round_began
            self._fail_rows(job)
        return late

    def _fail_rows(self, job: Job) -> None:
        keys = list(job.waiting)
        self._observer.on_late(len(keys))
        for key in keys:
            job.give(key, _LATE)

    def _run(self, batch: Batch, began: float) -> list[Job]:
        """Compute a batch; returns the jobs whose round is complete now."""
        outcomes: list[Outcome] = []
        error: HeadwayError | None = None
        try:
            outcomes = [_checked(outcome) for outcome in self._model.forward(list(batch.rows.values()))]
            if len(outcomes) != len(batch.rows):
                raise ValueError(f"forward gave {len(outcomes)} outcomes for {len(batch.rows)} rows")
        except Exception as raised:
            _log.error("a forward pass over %d row(s) failed: %s", len(batch.rows), describe_defect(raised))
            error = StepError("The forward pass of this request failed. The server's log has the details.")
            self._on_failure(raised)
        ended = time.perf_counter()
        with self._device.changed:
            self.is_running = False
            self.queue.measured(batch.tokens, ended - began)
            self._observer.on_forward(len(batch.rows), batch.tokens, ended - began)
            done = self._fail(batch, error) if error else self._give(batch, outcomes)
            for job in batch.jobs():
                job.forward_seconds += ended - began
                job.round_began = ended
            for job in done:
                self._observer.on_queued(job.queue_seconds)
        return done

    def _give(self, batch: Batch, outcomes: Sequence[Outcome]) -> list[Job]:
        for (key, readers), outcome in zip(batch.readers.items(), outcomes, strict=True):
            self._cache.put(key, outcome)
            for job in readers:
                job.give(key, outcome)
        return [job for job in batch.jobs() if job.is_round_done and not job.is_over]

    def _fail(self, batch: Batch, error: HeadwayError) -> list[Job]:
        failed = [job for job in batch.jobs() if not job.is_over]
        for job in failed:
            self.queue.remove(job)
            job.error = error
            job.running.clear()
        return failed


def _checked(outcome: Outcome) -> Outcome:
    """An array with NaN or infinity in it is no answer."""
    if isinstance(outcome, np.ndarray) and outcome.dtype.kind == "f" and not np.isfinite(outcome).all():
        return _NOT_FINITE
    return outcome
