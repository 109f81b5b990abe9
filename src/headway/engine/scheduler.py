"""Scheduler: which tokens of which sequences the next step computes, and which blocks they get.

One idea: every sequence has tokens it knows and tokens it has computed; a step spends a token budget on letting them
catch up. Decoding is a sequence that lacks one token, prefill one that lacks many, chunked prefill the rest of it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from headway.engine.images.tile_budget import TileBudget
from headway.engine.lora.slots import AdapterSlots
from headway.engine.sequence import Sequence, Status
from headway.engine.speculation.drafter import Drafter
from headway.engine.step_plan import Chunk, StepPlan
from headway.engine.waiting_queue import QUEUES, WaitingQueue
from headway.kvcache.manager import KVCacheManager
from headway.telemetry.stats import AdapterUse


@dataclass(frozen=True, slots=True)
class SchedulerLimits:
    """Budget of a step, and when a prompt may begin.

    `long_prefill_threshold` caps one prefill per step while others want tokens too, 0 = no cap. `reserve_full_prompt`: a
    prompt begins when all of it has room, else when its first chunk has. `watermark`: fraction of the blocks that a prompt
    must leave free when it begins beside others. `prefill_interval` k: while anything decodes, every k-th step at most
    computes prompts.
    """

    max_num_batched_tokens: int
    max_num_seqs: int
    long_prefill_threshold: int = 0
    chunked_prefill: bool = True
    policy: str = "fcfs"
    reserve_full_prompt: bool = True
    watermark: float = 0.0
    prefill_interval: int = 1


class Scheduler:
    """Owns the queues and, through the KV manager, the blocks.

    Invariants: a waiting sequence holds no blocks and has computed nothing; a running one holds blocks for all it
    computed; the oldest running sequence is preempted only when it is alone, so somebody always makes progress; a
    sequence leaves through `finish`, from any state, exactly once.
    """

    def __init__(self, limits: SchedulerLimits, kv: KVCacheManager, adapters: AdapterSlots | None = None):
        self.limits = limits
        self.kv = kv
        self.adapters = adapters
        self.waiting: WaitingQueue = QUEUES[limits.policy]()
        self.running: list[Sequence] = []
        self.drafter: Drafter | None = None
        self.tiles: TileBudget | None = None  # of images that a step may encode
        self._arrivals = 0
        self._steps_without_prefill = 0

    def reserve(self, count: int) -> int:
        """The first of `count` places in the order of arrival, for sequences that come one after the other."""
        self._arrivals += count
        return self._arrivals - count

    def add(self, sequence: Sequence, order: int | None = None) -> None:
        """`order`: a place that was reserved; else the next."""
        sequence.order = self.reserve(1) if order is None else order
        self.waiting.add(sequence)

    @property
    def has_work(self) -> bool:
        return bool(self.running) or len(self.waiting) > 0

    def schedule(self) -> StepPlan:
        """Plan one step. Sequences that decode come first (each gets its token in every step), then prefills that run,
        then waiting ones, in order; a prefill longer than the budget leaves half of it to others that want some."""
        plan = StepPlan()
        self._planned: dict[int, Chunk] = {}
        self._budget = self.limits.max_num_batched_tokens
        if self.tiles is not None:
            self.tiles.begin()
        decoding = [s for s in self.running if s.remaining == 1]
        for sequence in decoding:
            self._advance(plan, sequence, 1)
        if not decoding or self._steps_without_prefill + 1 >= self.limits.prefill_interval:
            self._prefill(plan)
        self._steps_without_prefill = self._steps_without_prefill + 1 if len(self._planned) <= len(decoding) else 0
        plan.chunks = list(self._planned.values())
        for chunk in plan.chunks:
            sequence = chunk.sequence
            self.kv.publish(sequence.table, self._hashes(sequence), chunk.start + chunk.count)
        if self.drafter is not None:  # after publishing: a draft is not known to be part of the text
            self._draft(plan, self.drafter)
        return plan

    def _draft(self, plan: StepPlan, drafter: Drafter) -> None:
        """Put drafts behind chunks, as far as the budget goes and as the blocks that are free leave one to everybody who runs: no draft
        is worth a preemption."""
        for chunk, drafts in drafter.drafts(plan.chunks, self._budget, plan.num_tokens):
            count = chunk.count + len(drafts)
            missing = self.kv.blocks_for(chunk.start + count) - len(chunk.sequence.table.blocks)
            if missing <= 0 or self.kv.pool.num_free - missing >= len(self.running):
                self.kv.grow(chunk.sequence.table, chunk.start + count)
                chunk.count, chunk.drafts = count, drafts
                self._budget -= len(drafts)

    def _prefill(self, plan: StepPlan) -> None:
        prefilling = [s for s in self.running if s.remaining > 1]
        for i, sequence in enumerate(prefilling):
            rivals = i + 1 < len(prefilling) or self._could_admit()
            self._advance(plan, sequence, self._cap(sequence.remaining, rivals))
        if plan.preemptions == 0:
            self._admit(plan)
        for chunk in list(self._planned.values()):  # what nobody else wanted goes back to the long prefills
            if self._budget > 0 and chunk.sequence.status is Status.RUNNING and not chunk.samples:
                self._extend(plan, chunk)

    def _could_admit(self) -> bool:
        return len(self.waiting) > 0 and len(self.running) < self.limits.max_num_seqs

    def _cap(self, needed: int, rivals: bool) -> int:
        """Tokens one prefill may take now, from what is left of the budget."""
        if not rivals:
            return min(needed, self._budget)
        cap = self._budget // 2 if needed > self.limits.max_num_batched_tokens else self._budget
        if self.limits.long_prefill_threshold:
            cap = min(cap, self.limits.long_prefill_threshold)
        return min(needed, max(1, cap), self._budget)

    def _advance(self, plan: StepPlan, sequence: Sequence, count: int) -> None:
        """Plan `count` more tokens of a running sequence, preempting the least deserving until its blocks are there."""
        if count <= 0 or self._budget <= 0 or sequence.status is not Status.RUNNING:
            return
        if self.tiles is not None and not (count := self.tiles.cut(sequence, sequence.num_computed, count)):
            return
        while not self.kv.grow(sequence.table, sequence.num_computed + count):
            victim = self._victim()
            self._preempt(plan, victim)
            if victim is sequence:
                return
        self._plan(sequence, count)

    def _plan(self, sequence: Sequence, count: int) -> None:
        chunk = Chunk(sequence, sequence.num_computed, count, samples=count == sequence.remaining)
        self._planned[id(sequence)] = chunk
        self._budget -= count

    def _extend(self, plan: StepPlan, chunk: Chunk) -> None:
        more = min(chunk.sequence.remaining - chunk.count, self._budget)
        if self.tiles is not None and more > 0:
            more = self.tiles.cut(chunk.sequence, chunk.start + chunk.count, more)
        if more > 0 and self.kv.grow(chunk.sequence.table, chunk.start + chunk.count + more):
            chunk.count += more
            chunk.samples = chunk.count == chunk.sequence.remaining
            self._budget -= more

    def _victim(self) -> Sequence:
        if self.limits.policy == "priority":
            return max(self.running, key=lambda s: (s.request.priority, s.order))
        return self.running[-1]

    def _preempt(self, plan: StepPlan, sequence: Sequence) -> None:
        chunk = self._planned.pop(id(sequence), None)
        if chunk is not None:
            self._budget += chunk.count
        plan.preemptions += 1
        plan.preempted_tokens += sequence.num_computed
        self.restart(sequence)

    def restart(self, sequence: Sequence) -> None:
        """Take everything from a running sequence; it will be recomputed, mostly from its own cached blocks."""
        self.running.remove(sequence)
        self.kv.free(sequence.table)
        sequence.num_computed = 0
        sequence.preemptions += 1
        if self.drafter is not None:
            self.drafter.preempted(sequence)
        sequence.status = Status.WAITING
        self.waiting.put_back(sequence)

    def _admit(self, plan: StepPlan) -> None:
        """Start waiting sequences in order until the budget, the seats or the blocks are used up; nobody overtakes, but those
        whose adapter has no place let others pass (`AdapterSlots`)."""
        while self._budget > 0 and self._could_admit():
            sequence = self.waiting.head() if self.adapters is None else self.adapters.next(self.waiting, self.running, self._arrivals)
            if sequence is None:
                return
            cached = self._cached_prefix(sequence)
            found = len(cached) * self.kv.block_size
            needed = sequence.num_tokens - found
            wanted = sequence.num_tokens if self.limits.reserve_full_prompt else found + min(needed, self._budget)
            kept_free = int(self.limits.watermark * self.kv.pool.num_blocks) if self.running else 0
            if not self.kv.can_start(cached, wanted, kept_free):
                return
            if needed > self._budget and not self.limits.chunked_prefill and self._planned:
                return
            if self.tiles is not None and not self.tiles.cut(sequence, found, 1):
                return
            if sequence is self.waiting.head():
                self.waiting.pop()
            else:
                self.waiting.remove(sequence)
            self.kv.adopt(sequence.table, cached)
            self.running.append(sequence)
            sequence.status = Status.RUNNING
            sequence.num_computed = found
            self._count_lookup(plan, sequence)
            # At least a chunk of this size was seen to fit (`can_start`).
            count = self._cap(needed, self._could_admit())
            if self.tiles is not None:
                count = self.tiles.cut(sequence, found, count)
            self.kv.grow(sequence.table, sequence.num_computed + count)
            self._plan(sequence, count)
            # Later sequences of this very step may share what this one computes.
            self.kv.publish(sequence.table, self._hashes(sequence), sequence.num_computed + count)

    def adapter_use(self) -> AdapterUse | None:
        return None if self.adapters is None else self.adapters.use(self.waiting, self.running)

    def _cached_prefix(self, sequence: Sequence) -> list[int]:
        if not reads_cache(sequence):
            return []
        return self.kv.find_prefix(self._hashes(sequence), sequence.num_tokens, sequence.table, sequence.request.landing)

    def _hashes(self, sequence: Sequence) -> list[bytes]:
        return self.kv.hashes(sequence.table, sequence.hashes, sequence.tokens)

    def _count_lookup(self, plan: StepPlan, sequence: Sequence) -> None:
        """Only the first admission counts: a preempted sequence that finds its own blocks again says nothing about prompts."""
        if sequence.num_cached < 0:
            if self.kv.caching and reads_cache(sequence):
                plan.prefix_queries += sequence.num_tokens
                plan.prefix_hits += sequence.num_computed
            sequence.num_cached = min(sequence.num_computed, sequence.num_prompt)
            plan.new_cached_tokens += sequence.num_cached
            if (landing := sequence.request.landing) is not None:
                plan.transferred_tokens += min(landing.counts.found_tokens, sequence.num_cached)
                sequence.request.landing = None  # its blocks are in the pool
            sequence.times.scheduled = time.monotonic()

    def finish(self, sequence: Sequence, reason: str, stop_reason: int | str | None = None) -> None:
        """The one way out, from any state: leave the queue, give the blocks back, remember why."""
        if sequence.status is Status.FINISHED:
            return
        if sequence.status is Status.RUNNING:
            self.running.remove(sequence)
            self.kv.free(sequence.table)
        else:
            self.waiting.remove(sequence)
        sequence.status = Status.FINISHED
        sequence.finish_reason = reason
        sequence.stop_reason = stop_reason
        sequence.output_counts = sequence.prompt_mask = None
        if self.drafter is not None:
            self.drafter.ended(sequence)
        sequence.hashes.clear()


def reads_cache(sequence: Sequence) -> bool:
    """Prompt log-probabilities need every position computed anew."""
    params = sequence.params
    return params.prompt_logprobs is None and not params.skip_reading_prefix_cache
