"""An engine core whose model is a fixed function of the prefix, which it reads from the slots of the cache: whatever is wrong with
blocks, positions or rejected drafts gives other logits. Everything else is real."""

from __future__ import annotations

import random
from collections.abc import Callable
from collections.abc import Sequence as Many
from dataclasses import dataclass, field
from typing import Any

import torch

from headway.engine.admission import AdmissionLimits, admit
from headway.engine.core import EngineCore, Observers
from headway.engine.model_runner import StepResult
from headway.engine.outputs import RequestOutput
from headway.engine.sampler import Sampler
from headway.engine.sampling_params import SamplingParams
from headway.engine.scheduler import Scheduler, SchedulerLimits
from headway.engine.sequence import Sequence
from headway.engine.speculation.draft_lengths import Costs
from headway.engine.speculation.drafter import Drafter, DraftLimits
from headway.engine.speculation.proposer import Ask, Proposer
from headway.engine.step_plan import StepPlan
from headway.kvcache.manager import KVCacheManager
from headway.telemetry.stats import StepStats
from tests.engine.byte_tokenizer import EOS, VOCAB, byte_tokenizer

Model = Callable[[tuple[int, ...]], torch.Tensor]  # prefix -> logits [VOCAB]


def random_model(prefix: tuple[int, ...]) -> torch.Tensor:
    logits = torch.randn(VOCAB, generator=torch.Generator().manual_seed(hash(prefix) % 2**62)) * 3
    logits[EOS] += 3
    return logits


class PrefixRunner:
    def __init__(self, model: Model, kv: KVCacheManager):
        self.model = model
        self.kv = kv
        self.slots: dict[int, int] = {}
        self.fail_when: Callable[[Sequence], bool] = lambda sequence: False

    def clear(self, blocks: list[int]) -> None:
        """Nothing here can be no number."""

    def execute(self, plan: StepPlan) -> StepResult:
        for chunk in plan.chunks:
            known = [*chunk.sequence.tokens[chunk.start : chunk.start + chunk.count], *chunk.drafts]
            assert len(known) == chunk.count
            for i, token in enumerate(known):
                self.slots[self._slot(chunk.sequence, chunk.start + i)] = token
        if any(self.fail_when(c.sequence) for c in plan.chunks):
            raise FloatingPointError("injected")
        sampling = [c for c in plan.chunks if c.samples]
        rows = []
        for chunk in sampling:
            end = chunk.start + chunk.count
            prefix = tuple(self.slots[self._slot(chunk.sequence, i)] for i in range(end))
            rows += [self.model(prefix[: end - len(chunk.drafts) + j]) for j in range(len(chunk.drafts) + 1)]
        return StepResult(torch.stack(rows) if rows else torch.empty(0, VOCAB), sampling, [])

    def _slot(self, sequence: Sequence, position: int) -> int:
        return sequence.table.blocks[position // self.kv.block_size] * self.kv.block_size + position % self.kv.block_size


@dataclass
class Remembering:
    """Proposes what an earlier run answered, with wrong tokens here and there."""

    answers: dict[tuple[str, int], list[int]]
    wrong: float
    dice: random.Random
    seconds_per_token: float = 0.0
    ends: list[str] = field(default_factory=list)

    def propose(self, asks: Many[Ask]) -> list[list[int]]:
        return [self._guess(ask) for ask in asks]

    def _guess(self, ask: Ask) -> list[int]:
        sequence = ask.sequence
        ahead = self.answers.get((sequence.request.id, sequence.index), [])[sequence.num_output :][: ask.limit]
        return [self.dice.randrange(VOCAB) if self.dice.random() < self.wrong else token for token in ahead]

    def preempted(self, sequence: Sequence) -> None:
        """Nothing is kept."""

    def ended(self, sequence: Sequence) -> None:
        self.ends.append(sequence.request.id)


class PrefixCore:
    def __init__(
        self, model: Model = random_model, *, num_blocks: int = 200, block_size: int = 4, budget: int = 64, caching: bool = True,
        proposer: Proposer | None = None, drafts: int = 4, rows: int = 1000, costs: Costs | None = None, seed: int = 0, **limits: Any,
    ):  # fmt: skip
        """`limits` are those of SchedulerLimits."""
        self.kv = KVCacheManager(num_blocks, block_size, caching=caching)
        self.runner = PrefixRunner(model, self.kv)
        self.steps: list[StepStats] = []
        scheduler = Scheduler(SchedulerLimits(budget, **({"max_num_seqs": 16} | limits)), self.kv)
        self.drafter = scheduler.drafter = None if proposer is None else Drafter(proposer, DraftLimits(drafts, rows, 10_000), costs)
        self.core = EngineCore(scheduler, self.runner, Sampler(VOCAB, seed=seed), byte_tokenizer(), Observers(self.steps.append))  # type: ignore[arg-type]
        self.outputs: dict[str, list[RequestOutput]] = {}

    def add(self, name: str, prompt: list[int], **params: Any) -> None:
        limits = AdmissionLimits(500, VOCAB, VOCAB)
        self.core.add(admit(name, prompt, SamplingParams(**params), limits, byte_tokenizer(), self.kv))

    def step(self) -> None:
        for output in self.core.step():
            self.outputs.setdefault(output.request_id, []).append(output)

    def run(self) -> dict[str, list[RequestOutput]]:
        while self.core.has_work:
            self.step()
        assert self.kv.pool.num_free == self.kv.pool.num_blocks - 1, "blocks were lost"
        return self.outputs

    def answers(self) -> dict[tuple[str, int], list[int]]:
        """Of a run with cumulative outputs."""
        return {(name, c.index): c.token_ids for name, outputs in self.outputs.items() for c in outputs[-1].outputs}

    @property
    def accepted(self) -> int:
        return sum(a for stats in self.steps for _, a in stats.drafts)

    @property
    def rejected(self) -> int:
        return sum(p - a for stats in self.steps for p, a in stats.drafts)
