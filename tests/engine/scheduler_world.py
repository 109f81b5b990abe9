"""A world for the scheduler without a model: every cache slot remembers the whole prefix that was written into it.

The "model" maps a prefix to its next token by a fixed rule, so the right output of a request is known whatever was
scheduled, shared or preempted; and reading a slot that holds another prefix is noticed at once.
"""

from __future__ import annotations

from headway.engine.sampling_params import SamplingParams
from headway.engine.scheduler import Scheduler, SchedulerLimits
from headway.engine.sequence import Request, Sequence, Status
from headway.engine.step_plan import StepPlan
from headway.kvcache.manager import KVCacheManager


def next_token(prefix: tuple[int, ...]) -> int:
    return (sum((i + 1) * t for i, t in enumerate(prefix)) * 2654435761 >> 7) % 50


def expected_output(prompt: list[int], count: int) -> list[int]:
    tokens = list(prompt)
    for _ in range(count):
        tokens.append(next_token(tuple(tokens)))
    return tokens[len(prompt) :]


class World:
    def __init__(self, limits: SchedulerLimits, num_blocks: int, block_size: int, *, caching: bool = True):
        self.kv = KVCacheManager(num_blocks, block_size, caching=caching)
        self.scheduler = Scheduler(limits, self.kv)
        self.slots: dict[int, tuple[int, ...]] = {}
        self.all: list[Sequence] = []
        self.steps = 0
        self.preemptions = 0
        self.log: list[dict[int, int]] = []  # per step: sequence number -> tokens

    def add(self, prompt: list[int], output: int, *, priority: int = 0, salt: str | None = None, skip_cache: bool = False) -> Sequence:
        params = SamplingParams(max_tokens=output, skip_reading_prefix_cache=skip_cache or None)
        request = Request(str(len(self.all)), prompt, params, priority=priority, cache_salt=salt)
        sequence = Sequence(
            request, 0, params, list(prompt), self.kv.new_table(salt), frozenset(), len(prompt) + output, num_prompt=len(prompt)
        )
        request.sequences.append(sequence)
        self.scheduler.add(sequence)
        self.all.append(sequence)
        return sequence

    def step(self) -> StepPlan:
        plan = self.scheduler.schedule()
        self.steps += 1
        self.preemptions += plan.preemptions
        self.check_plan(plan)
        for chunk in plan.chunks:  # all writes of a layer come before its reads
            for position in range(chunk.start, chunk.start + chunk.count):
                self.slots[self.slot(chunk.sequence, position)] = tuple(chunk.sequence.tokens[: position + 1])
        for chunk in plan.chunks:
            for position in range(chunk.start + chunk.count):
                seen = self.slots[self.slot(chunk.sequence, position)]
                assert seen == tuple(chunk.sequence.tokens[: position + 1]), "a sequence reads another prefix than its own"
        for chunk in plan.chunks:
            sequence = chunk.sequence
            sequence.num_computed += chunk.count
            if chunk.samples:
                sequence.tokens.append(next_token(tuple(sequence.tokens)))
                if sequence.num_tokens >= sequence.max_tokens_total:
                    self.scheduler.finish(sequence, "length")
        self.log.append({self.all.index(c.sequence): c.count for c in plan.chunks})
        return plan

    def slot(self, sequence: Sequence, position: int) -> int:
        return sequence.table.blocks[position // self.kv.block_size] * self.kv.block_size + position % self.kv.block_size

    def check_plan(self, plan: StepPlan) -> None:
        limits = self.scheduler.limits
        assert plan.num_tokens <= limits.max_num_batched_tokens
        assert len(self.scheduler.running) <= limits.max_num_seqs
        assert len({id(c.sequence) for c in plan.chunks}) == len(plan.chunks)
        holders = [0] * self.kv.pool.num_blocks
        for sequence in self.scheduler.running:
            for block in sequence.table.blocks:
                holders[block] += 1
        assert holders == [self.kv.pool.references(b) for b in range(self.kv.pool.num_blocks)], "references do not match"
        for sequence in self.scheduler.waiting:
            assert not sequence.table.blocks
            assert sequence.num_computed == 0
        for chunk in plan.chunks:
            assert chunk.count >= 1
            assert chunk.start == chunk.sequence.num_computed
            assert chunk.samples == (chunk.start + chunk.count == chunk.sequence.num_tokens)

    def run(self, limit: int = 5000) -> None:
        idle = 0
        while self.scheduler.has_work:
            plan = self.step()
            idle = 0 if plan.chunks else idle + 1
            assert idle < 2, "two empty plans in a row with work waiting"
            assert self.steps < limit, "no end in sight"
        self.check_empty()

    def check_empty(self) -> None:
        assert self.kv.pool.num_free == self.kv.pool.num_blocks - 1, "blocks were lost"
        assert not self.scheduler.running
        assert len(self.scheduler.waiting) == 0

    def check_outputs(self) -> None:
        for sequence in self.all:
            if sequence.finish_reason == "length":
                want = expected_output(sequence.tokens[: sequence.num_prompt], sequence.num_output)
                assert sequence.output_ids == want
            assert sequence.status is Status.FINISHED
