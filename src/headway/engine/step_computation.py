"""The part of a step that computes: forward pass and sampling. If it raises, the culprit is found, so that it fails alone."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from headway.engine.model_runner import ModelRunner
from headway.engine.sampler import RankedLogprob, SampledToken, Sampler
from headway.engine.sequence import Sequence
from headway.engine.speculation.verification import rows_of, verified
from headway.engine.step_plan import Chunk, StepPlan
from headway.errors import RankError, StepError

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Computed:
    """What became of the chunks of a plan."""

    done: list[Chunk] = field(default_factory=list)
    sampled: list[tuple[Sequence, SampledToken]] = field(default_factory=list)
    scored: list[tuple[Chunk, list[list[RankedLogprob]]]] = field(default_factory=list)  # prompt log-probabilities
    read: list[Chunk] = field(default_factory=list)  # the last chunks of prompts that are read
    failed: list[tuple[Chunk, Exception]] = field(default_factory=list)
    spoilt: list[Chunk] = field(default_factory=list)  # they share blocks that a failed chunk should have written

    def add(self, other: Computed) -> None:
        self.done += other.done
        self.sampled += other.sampled
        self.scored += other.scored
        self.read += other.read


class StepComputation:
    """Computing again does no harm: keys and values go to the same places, and draws depend on the position alone."""

    def __init__(self, runner: ModelRunner, sampler: Sampler, block_size: int):
        self.runner = runner
        self.sampler = sampler
        self._block_size = block_size

    def run(self, plan: StepPlan) -> Computed:
        """Raises RankError only."""
        try:
            return self._attempt(plan)
        except RankError:  # no sequence can be computed any more, alone or not
            raise
        except Exception as error:
            _forget_counts(plan)
            if len(plan.chunks) == 1:
                _log_failure(plan.chunks[0].sequence.request.id, error)
                return Computed(failed=[(plan.chunks[0], error)])
            _log.warning("a step with %d sequences failed (%s); each is tried alone", len(plan.chunks), type(error).__name__)
        return self._one_by_one(plan)

    def _attempt(self, plan: StepPlan) -> Computed:
        result = self.runner.execute(plan)
        rows = rows_of(result.sampling)
        tokens = self.sampler.sample(result.logits, rows) if rows else []
        return Computed(list(plan.chunks), verified(result.sampling, tokens), result.prompt_logprobs, result.read)

    def _one_by_one(self, plan: StepPlan) -> Computed:
        """In the order of the plan: who shares blocks of this very step comes after the one that writes them."""
        out = Computed()
        unwritten: set[int] = set()
        for chunk in plan.chunks:
            if unwritten.intersection(chunk.sequence.table.blocks):
                out.spoilt.append(chunk)
                continue
            alone = self.run(StepPlan([chunk]))
            out.add(alone)
            out.failed += alone.failed
            if alone.failed:
                unwritten.update(chunk.sequence.table.blocks[chunk.start // self._block_size :])
        return out


def _log_failure(request_id: str, error: Exception) -> None:
    """Errors that were foreseen have a reason that says it all; the others come with the place where they arose."""
    if isinstance(error, StepError):
        _log.warning("the step of request %s failed (%s); it ends with an error", request_id, error.reason)
    else:
        _log.error("the step of request %s failed; it ends with an error", request_id, exc_info=error)


def _forget_counts(plan: StepPlan) -> None:
    """What sampling counted may hold a token that never came to be; it is counted anew."""
    for chunk in plan.chunks:
        chunk.sequence.output_counts = None
