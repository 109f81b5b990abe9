"""Replica: one engine as its scheduler sees it, advanced from step to step, or over many steps at once while nothing but decoding happens.

The rules are those of `engine.scheduler`: who decodes gets a token in every step, then prefills that run, then waiting ones in order; a
prefill longer than the budget leaves half of it to others; blocks are taken as sequences grow, and who came last is preempted when there are
none. Requests end after their output tokens.
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass, field
from math import ceil, sqrt

from headway.bench.simulation.block_budget import BlockBudget
from headway.bench.simulation.book import Book
from headway.bench.simulation.job import Job
from headway.bench.simulation.replica_limits import ReplicaLimits
from headway.bench.simulation.step_times import StepTimes, StepWork


@dataclass(slots=True)
class _Step:
    """What runs now: a `leap` of `steps` decode steps that last `first`, `first + slope`, ... seconds, or one step, with chunks: (job, tokens)."""

    start: float
    steps: int
    first: float
    slope: float
    leap: bool
    chunks: list[tuple[Job, int]] = field(default_factory=list)

    def end(self, steps: int) -> float:
        return self.start + steps * self.first + self.slope * steps * (steps - 1) / 2

    def boundary(self, now: float) -> int:
        """Steps until the first end of one at or after `now`, at least 1."""
        passed, middle = now - self.start, self.first - self.slope / 2
        if self.first <= 0:
            return 1
        steps = passed / self.first if self.slope <= 1e-9 * self.first else (sqrt(middle * middle + 2 * self.slope * max(0.0, passed)) - middle) / self.slope
        count = max(1, ceil(steps) - 1)  # rounding
        while self.end(count) < now:
            count += 1
        return count


class Replica:
    """`outstanding`: requests that arrived and have not ended. `busy`: seconds of steps."""

    __slots__ = (
        "_base", "_book", "_context", "_ends", "_late", "_now", "_number", "_prefilling", "_residues", "_running", "_since", "_times", "_waiting",
        "blocks", "busy", "limits", "outstanding",
    )  # fmt: skip

    def __init__(self, limits: ReplicaLimits, times: StepTimes, book: Book, decode_seconds: list[float]):
        """`decode_seconds`: of a step in which as many rows decode as the index says, without what grows with context."""
        self.limits = limits
        self.blocks = BlockBudget(limits.num_blocks, limits.block_size)
        self.busy = 0.0
        self.outstanding = 0
        self._times = times
        self._book = book
        self._base = decode_seconds
        self._waiting: deque[Job] = deque()
        self._running: dict[int, Job] = {}  # in the order of admission
        self._prefilling: list[Job] = []  # those of them that do not decode
        self._number = 0  # of the step
        self._ends: list[tuple[int, int]] = []  # (step number, request) of those that decode; a heap, of which preempted ones are no part any more
        self._residues = [0] * limits.block_size  # decoding rows by (known - step number) modulo the block size
        self._context = 0  # sum of the known tokens of decoding rows
        self._late: list[Job] = []  # decoding, but their last token is not of the last step
        self._since = 0  # steps without a prefill
        self._now: _Step | None = None

    # ---- from outside -----------------------------------------------------------------------------------------------

    def fits(self, job: Job) -> bool:
        """Whether it could run here at all."""
        return self.blocks.for_tokens(job.target) <= self.blocks.blocks

    def arrive(self, job: Job, now: float) -> float | None:
        """The moment at which `advance` is due because of the job, None = no earlier than already known."""
        self.outstanding += 1
        self._waiting.append(job)
        running = self._now
        if running is None:
            return now
        if running.leap and len(self._waiting) == 1 and len(self._running) < self.limits.max_num_seqs:
            steps = running.boundary(now)
            if steps < running.steps:
                running.steps = steps
                return running.end(steps)
        return None

    def advance(self, now: float) -> float | None:
        """End the step that is due and begin the next; the moment when that ends, None when there is nothing to do."""
        if self._now is not None:
            self._finish(self._now, now)
            self._now = None
        if not self._running and not self._waiting:
            return None
        self._now = self._begin(now)
        return self._now.end(self._now.steps)

    # ---- planning ---------------------------------------------------------------------------------------------------

    def _begin(self, now: float) -> _Step:
        decoding = len(self._running) - len(self._prefilling)
        allowed = not decoding or self._since + 1 >= self.limits.prefill_schedule_interval
        if decoding and not (allowed and (self._prefilling or self._head_starts(decoding))):
            steps = self._leap(decoding, allowed)
            if steps:
                context = self._times.context
                return _Step(now, steps, self._base[decoding] + context * self._context, context * decoding, leap=True)
        return self._step(now, decoding, allowed)

    def _leap(self, decoding: int, allowed: bool) -> int:
        """How many steps nothing can happen in but decoding; 0 when there are no blocks even for the next."""
        if self._late:
            steps = 1
        else:
            while self._ended(*self._ends[0]):
                heapq.heappop(self._ends)
            steps = self._ends[0][0] - self._number
        if not allowed and (self._prefilling or self._waiting):
            steps = min(steps, self.limits.prefill_schedule_interval - 1 - self._since)
        size, free = self.limits.block_size, self.blocks.free
        if decoding * (steps // size + 1) <= free:
            return steps
        whole = min(steps // size, free // decoding)
        count, free = whole * size, free - whole * decoding
        while count < steps and (fresh := self._residues[(1 - self._number - count) % size]) <= free:
            free -= fresh
            count += 1
        return count

    def _ended(self, end: int, index: int) -> bool:
        """Whether an entry of the heap is of somebody who was preempted since."""
        job = self._running.get(index)
        return job is None or job.end != end

    def _head_starts(self, decoding: int) -> bool:
        budget = self.limits.max_num_batched_tokens - decoding
        if not self._waiting or len(self._running) >= self.limits.max_num_seqs or budget <= 0:
            return False
        return self._start(self._waiting[0], budget, planned=True) is not None

    def _start(self, job: Job, budget: int, *, planned: bool) -> tuple[int, int, int] | None:
        """Blocks of its beginning, of its own, and how many of both are free, when a waiting job may begin; else None."""
        limits, blocks = self.limits, self.blocks
        beginning = own = free = 0
        if limits.enable_prefix_caching:
            most = (job.known - 1) // blocks.size
            if job.prefix >= 0:
                beginning, free = blocks.cached(job.prefix)
                beginning = min(beginning, most, job.shared // blocks.size)
                free = min(free, beginning)
            if job.kept is not None and beginning >= job.adopted:
                own = min(blocks.still_there(job.kept), most - beginning)
                free += own
        found = (beginning + own) * blocks.size
        needed = job.known - found
        wanted = job.known if limits.scheduler_reserve_full_isl else found + min(needed, budget)
        kept_free = int(limits.watermark * (blocks.blocks + 1)) if self._running else 0
        if blocks.for_tokens(wanted) - beginning - own + free + kept_free > blocks.free:
            return None
        if needed > budget and not limits.enable_chunked_prefill and planned:
            return None
        return beginning, own, free

    def _step(self, now: float, decoding: int, allowed: bool) -> _Step:
        """One step with prefills, or one in which blocks are short."""
        size = self.limits.block_size
        preempted: list[Job] = []
        fresh = self._residues[(1 - self._number) % size] if decoding else 0
        if fresh <= self.blocks.free:
            self.blocks.take(fresh)
        else:
            self._grow_one_by_one(now, preempted)
        chunks: dict[int, int] = {}
        if allowed:
            self._prefill(now, chunks, preempted)
        running = self._running
        prefilling = [(running[index], count) for index, count in chunks.items()]
        rows = len(running) - len(self._prefilling)
        self._since = self._since + 1 if rows + len(chunks) <= decoding else 0
        many = [(job, count) for job, count in prefilling if count > 1]
        single = [job for job, count in prefilling if count == 1]
        work = StepWork(
            sum(count for _, count in many), len(many), sum(count * job.computed + count * (count + 1) // 2 for job, count in many),
            rows + len(single), self._context + sum(job.computed + 1 for job in single),
            rows + sum(job.computed + count == job.known for job, count in prefilling),
        )  # fmt: skip
        # Every job of a step that was planned empty was preempted, and begins again in the next.
        return _Step(now, 1, self._times.seconds(work) if work.tokens else 0.0, 0.0, leap=False, chunks=prefilling)

    def _grow_one_by_one(self, now: float, preempted: list[Job]) -> None:
        """Blocks for those that decode, in their order, taken from who came last when there are none."""
        size, granted = self.limits.block_size, set[int]()
        for job in [job for job in self._running.values() if job.end >= 0]:
            if job.end < 0 or (job.offset + self._number - 1) % size:
                continue
            while self.blocks.free < 1:
                victim = next(reversed(self._running.values()))
                self._preempt(victim, now, preempted, has_next=victim.index in granted)
                if victim is job:
                    break
            else:
                self.blocks.take(1)
                granted.add(job.index)

    def _prefill(self, now: float, chunks: dict[int, int], preempted: list[Job]) -> None:
        waiting, running, blocks, limits = self._waiting, self._running, self.blocks, self.limits
        budget = limits.max_num_batched_tokens - (len(running) - len(self._prefilling))
        prefilling = list(self._prefilling)
        for i, job in enumerate(prefilling):
            if job.index not in running:
                continue
            rivals = i + 1 < len(prefilling) or (bool(waiting) and len(running) < limits.max_num_seqs)
            count = self._cap(job.known - job.computed, budget, rivals)
            if count <= 0:
                continue
            while (fresh := blocks.for_tokens(job.computed + count) - job.blocks) > blocks.free:
                victim = next(reversed(running.values()))
                budget += 1 if victim.end >= 0 else chunks.pop(victim.index, 0)
                self._preempt(victim, now, preempted, has_next=True)
                if victim is job:
                    break
            else:
                self._plan(job, count, max(0, fresh), chunks)
                budget -= count
        while not preempted and budget > 0 and waiting and len(running) < limits.max_num_seqs:
            job = waiting[0]
            found = self._start(job, budget, planned=len(running) > len(self._prefilling) or bool(chunks))
            if found is None:
                break
            waiting.popleft()
            self._admit(job, *found)
            count = self._cap(job.known - job.computed, budget, bool(waiting) and len(running) < limits.max_num_seqs)
            self._plan(job, count, blocks.for_tokens(job.computed + count) - job.blocks, chunks)
            budget -= count
        for index, count in list(chunks.items()):
            job = running[index]
            more = min(job.known - job.computed - count, budget)
            if more > 0 and (fresh := blocks.for_tokens(job.computed + count + more) - job.blocks) <= blocks.free:
                self._plan(job, count + more, max(0, fresh), chunks)
                budget -= more

    def _cap(self, needed: int, budget: int, rivals: bool) -> int:
        """As `Scheduler._cap`."""
        if not rivals:
            return min(needed, budget)
        limits = self.limits
        cap = budget // 2 if needed > limits.max_num_batched_tokens else budget
        if limits.long_prefill_token_threshold:
            cap = min(cap, limits.long_prefill_token_threshold)
        return min(needed, max(1, cap), budget)

    def _plan(self, job: Job, count: int, fresh: int, chunks: dict[int, int]) -> None:
        self.blocks.take(fresh)
        job.blocks += fresh
        chunks[job.index] = count
        if job.prefix >= 0 and self.limits.enable_prefix_caching:
            reached = min(job.shared, job.computed + count) // self.blocks.size
            if reached > job.adopted and self.blocks.publish(job.prefix, reached, holds=job.holds):
                job.adopted, job.holds = reached, True

    def _admit(self, job: Job, beginning: int, own: int, free: int) -> None:
        blocks = self.blocks
        own_free = own  # what was kept after a preemption is always among the free ones
        if beginning:
            blocks.hold(job.prefix, beginning, free - own_free)
        blocks.free -= own_free
        job.holds, job.adopted = beginning > 0, beginning
        job.blocks = beginning + own
        job.computed = job.blocks * blocks.size
        job.kept, job.end = None, -1
        self._running[job.index] = job
        self._prefilling.append(job)
        if not job.looked_up:
            job.looked_up = True
            self._book.looked_up_tokens += job.known
            self._book.cached_tokens += job.computed

    def _preempt(self, job: Job, now: float, preempted: list[Job], *, has_next: bool) -> None:
        """Back to the front of the queue. `has_next`: a decoding row that has the block of this step already."""
        if job.end >= 0:
            job.known = job.offset + self._number
            job.computed = job.known - 1
            job.blocks = self.blocks.for_tokens(job.known if has_next else job.computed)
            self._residues[job.offset % self.limits.block_size] -= 1
            self._context -= job.known
            if job in self._late:
                self._late.remove(job)
            else:
                job.last = now
        else:
            self._prefilling.remove(job)
        del self._running[job.index]
        freed = self.blocks.give_back(job.blocks - job.adopted)
        if self.limits.enable_prefix_caching:
            freed.count = max(0, job.computed // self.blocks.size - job.adopted)
            job.kept = freed
        if job.holds:
            self.blocks.release(job.prefix)
        job.holds, job.end, job.computed, job.blocks = False, -1, 0, 0
        preempted.append(job)
        self._waiting.appendleft(job)
        self._book.preemptions += 1

    def _grow(self, rows: int, steps: int) -> None:
        """The blocks that a leap took; that they are there was seen when it was planned."""
        size = self.limits.block_size
        whole, rest = divmod(steps, size)
        self.blocks.take(whole * rows + sum(self._residues[(1 - self._number - i) % size] for i in range(rest)))

    # ---- after a step -----------------------------------------------------------------------------------------------

    def _finish(self, step: _Step, now: float) -> None:
        """Who decodes has one more token for each step; chunks that reached the last known token have their next."""
        book = self._book
        self.busy += now - step.start
        rows, steps = len(self._running) - len(self._prefilling), step.steps
        book.steps += steps
        if step.leap:
            self._since += steps
            self._grow(rows, steps)
        if rows:
            on_time = rows - len(self._late)
            if on_time:
                book.gaps.add_rising(step.first, step.slope, steps, on_time)
            for job in self._late:
                book.prompt_tokens += 1  # the last one of its prompt
                self._token(job, now)
            self._late = []
            self._context += rows * steps
        self._number += steps
        while self._ends and self._ends[0][0] <= self._number:
            end, index = heapq.heappop(self._ends)
            if not self._ended(end, index):
                job = self._running[index]
                self._residues[job.offset % self.limits.block_size] -= 1
                self._context -= job.target
                self._end(job, self.blocks.for_tokens(job.target - 1), now)
        for job, count in step.chunks:
            self._chunk_done(job, count, now)

    def _chunk_done(self, job: Job, count: int, now: float) -> None:
        job.computed += count
        self._book.prompt_tokens += count
        samples = job.computed == job.known
        if samples:
            job.known += 1
            self._token(job, now)
            if job.known >= job.target:
                self._prefilling.remove(job)
                self._end(job, job.blocks, now)
                return
        if job.known - job.computed == 1:
            self._prefilling.remove(job)
            job.offset = job.known - self._number
            job.end = self._number + job.target - job.known
            self._residues[job.offset % self.limits.block_size] += 1
            self._context += job.known
            heapq.heappush(self._ends, (job.end, job.index))
            if not samples:
                self._late.append(job)

    def _token(self, job: Job, now: float) -> None:
        if job.started:
            self._book.gaps.add(now - job.last, 1)
        else:
            job.started = True
            self._book.first[job.index] = now
        job.last = now

    def _end(self, job: Job, blocks: int, now: float) -> None:
        del self._running[job.index]
        self.blocks.give_back(blocks - job.adopted)
        if job.holds:
            self.blocks.release(job.prefix)
        self.outstanding -= 1
        self._book.done[job.index] = now
