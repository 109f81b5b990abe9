"""ForwardQueue: which rows of which jobs make up the next forward pass of one model. Pure policy: no thread, no clock."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from headway.runtime.execution.execution_settings import ExecutionSettings
from headway.runtime.execution.job import Job
from headway.runtime.execution.row_key import RowKey
from headway.runtime.row import Row

SHARED_TOKENS = 512
"""Rows of other jobs join a pass up to this many tokens: below it a pass costs about as much with them as without;
above it a short job would wait for a long one and nothing would be saved."""
SLICE_TOKENS = 8192
"""How much of a large job runs in one pass while other jobs wait."""
_ALIGNMENT = 8  # rows count as multiples of it against SHARED_TOKENS
_FIRST_SECONDS_PER_TOKEN = 2e-5
_WEIGHT_OF_NEW = 0.1


@dataclass(slots=True)
class Batch:
    """Distinct rows of one pass, and which jobs read each."""

    rows: dict[RowKey, Row] = field(default_factory=dict)
    readers: dict[RowKey, list[Job]] = field(default_factory=dict)
    tokens: int = 0
    aligned: int = 0  # tokens, rows rounded up

    def jobs(self) -> list[Job]:
        return list(dict.fromkeys(job for readers in self.readers.values() for job in readers))

    def add(self, key: RowKey, row: Row, job: Job) -> None:
        if key in self.rows:
            self.readers[key].append(job)
            return
        self.rows[key] = row
        self.readers[key] = [job]
        self.tokens += row.cost
        self.aligned += aligned(row)


def aligned(row: Row) -> int:
    return -(-row.cost // _ALIGNMENT) * _ALIGNMENT


class ForwardQueue:
    """Jobs in the order of their expected finish: enqueue time + tokens x measured seconds per token. Short ones go
    first, and a long one is overtaken by those only that came within the time that it will take itself."""

    def __init__(self, settings: ExecutionSettings):
        self._settings = settings
        self._jobs: list[Job] = []
        self.seconds_per_token = _FIRST_SECONDS_PER_TOKEN
        self._company = 1  # jobs in the last pass

    def __len__(self) -> int:
        return len(self._jobs)

    @property
    def jobs(self) -> Iterable[Job]:
        return tuple(self._jobs)

    def add(self, job: Job, now: float, tokens: int) -> None:
        """`tokens` of the round that begins."""
        job.expected_finish = now + tokens * self.seconds_per_token
        self._jobs.append(job)

    def remove(self, job: Job) -> None:
        """Forget a job, if it is here."""
        if job in self._jobs:
            self._jobs.remove(job)

    def next_finish(self) -> float | None:
        """Expected finish of the job that is next; None when nothing waits."""
        return min((job.expected_finish for job in self._jobs), default=None)

    def late(self, now: float) -> list[Job]:
        """Jobs whose deadline has passed."""
        return [job for job in self._jobs if job.deadline is not None and now >= job.deadline]

    def wait_until(self) -> float:
        """The time before which the next pass should not begin.

        A job waits at most `batch_window_ms` for company, and only when passes have lately had some: as long as fewer
        jobs are here than were in the last pass. Who is alone does not wait.
        """
        if not self._settings.share_forwards or len(self._jobs) >= self._company or not self._jobs:
            return 0.0
        if sum(_shared_cost(job) for job in self._jobs) >= SHARED_TOKENS:
            return 0.0
        return min(job.round_began for job in self._jobs) + self._settings.batch_window_ms / 1000

    def take(self, others_wait: bool) -> Batch:
        """Rows for one pass, at least one; they are moved from `waiting` to `running` of their jobs.

        The job that is next gives as many rows as fit into `max_batch_tokens` and `max_num_seqs` (one that is larger than
        that runs alone); other jobs join while all of it is short. `others_wait`: jobs of other models do.
        """
        order = sorted(self._jobs, key=lambda job: job.expected_finish)
        most = self._settings.max_batch_tokens
        if others_wait or len(order) > 1:
            most = min(most, SLICE_TOKENS)
        batch = Batch()
        self._fill(batch, order[0], most, aligned_most=None)
        if self._settings.share_forwards:
            for job in order[1:]:
                self._fill(batch, job, most, aligned_most=SHARED_TOKENS)
        jobs = batch.jobs()
        for job in jobs:
            if not job.waiting:
                self._jobs.remove(job)
        self._company = len(jobs)
        return batch

    def measured(self, tokens: int, seconds: float) -> None:
        """A pass over `tokens` took `seconds`."""
        if tokens > 0:
            self.seconds_per_token += _WEIGHT_OF_NEW * (seconds / tokens - self.seconds_per_token)

    def _fill(self, batch: Batch, job: Job, most: int, aligned_most: int | None) -> None:
        rows_most = self._settings.max_num_seqs
        for key, row in list(job.waiting.items()):
            if key not in batch.rows and batch.rows:
                if batch.tokens + row.cost > most or (rows_most is not None and len(batch.rows) >= rows_most):
                    continue
                if aligned_most is not None and batch.aligned + aligned(row) > aligned_most:
                    continue
            batch.add(key, row, job)
            job.running.add(key)
            del job.waiting[key]


def _shared_cost(job: Job) -> int:
    return sum(aligned(row) for row in job.waiting.values())
