"""StepCost: how long a step takes by the number of its tokens, measured when the engine starts."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headway.engine.model_runner import ModelRunner
from headway.engine.sampler import Sampler
from headway.engine.sampling_params import SamplingParams
from headway.engine.sequence import Request, Sequence
from headway.engine.step_computation import StepComputation
from headway.engine.step_plan import Chunk, StepPlan
from headway.kvcache.block_pool import NULL_BLOCK
from headway.kvcache.manager import BlockTable

_SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
_REPEATS = 4
_PATIENCE_SECONDS = 3.0  # for all measurements together; sizes that are left are extrapolated

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class StepCost:
    """`seconds[i]` for a step of `tokens[i]` tokens, all of which are sampled from; both ascending."""

    tokens: Floats
    seconds: Floats

    def __call__(self, tokens: Floats) -> Floats:
        """Seconds of steps of so many tokens: between the measured sizes on straight lines, beyond the last on the line from the
        origin through it, since from some size on every token costs the same."""
        beyond = np.maximum(tokens / self.tokens[-1], 1.0)
        seconds: Floats = np.interp(tokens, self.tokens, self.seconds) * beyond
        return seconds


def measure_steps(runner: ModelRunner, sampler: Sampler, most_tokens: int) -> StepCost:
    """Steps as they will be, forward pass and sampling, over the null block, which is cleared again: of each size up to `most_tokens` the
    fastest of several, taken in turn so that a disturbance does not hit all of one size."""
    computation = StepComputation(runner, sampler, runner.block_size)
    began = time.monotonic()
    seconds: dict[int, float] = {}
    for _ in range(_REPEATS):
        for size in [n for n in _SIZES if n == 1 or n <= most_tokens]:
            if seconds and time.monotonic() - began > _PATIENCE_SECONDS:
                break
            plan = StepPlan([_chunk(size, runner.block_size)])
            start = time.perf_counter()
            computed = computation.run(plan)
            seconds[size] = min(seconds.get(size, math.inf), time.perf_counter() - start)
            if computed.failed:
                raise computed.failed[0][1]
    runner.clear([NULL_BLOCK])
    # More tokens never take less time; what says so is noise.
    return StepCost(np.array([*seconds], np.float64), np.maximum.accumulate(np.array([*seconds.values()])))


def _chunk(size: int, block_size: int) -> Chunk:
    table = BlockTable(b"", [NULL_BLOCK] * -(-size // block_size))
    request = Request("step cost", [0], SamplingParams(max_tokens=None))
    sequence = Sequence(request, 0, request.params, [0], table, frozenset(), size, num_prompt=1)
    return Chunk(sequence, 0, size, samples=True, drafts=(0,) * (size - 1))
