"""How many tokens to draft for each sequence of a step: as many as pay."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Many
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
MARGIN = 1.05  # a gain that is expected must be at least so large: what is measured is never exact


@dataclass(frozen=True, slots=True)
class Costs:
    """`step`: seconds of steps by their number of tokens; `round`: seconds of one round of guesses, a token for each sequence."""

    step: Callable[[Floats], Floats]
    round: float = 0.0


def paying_lengths(rates: Many[float], most: Many[int], tokens: int, sampled: int, costs: Costs) -> list[int]:
    """For each sequence a number of drafts, from 0 to `most`, so that tokens per second of the step are largest.

    A step of `tokens` tokens that samples `sampled` gives `sampled` tokens. Draft j of a sequence whose guesses are right at `rate`
    adds rate^j to that: it counts when all before it were right. Drafts are taken in the order of what they add, and the best
    number of them is looked for among all. No drafts at all unless that gains MARGIN over none.
    """
    width = max(most, default=0)
    if width == 0:
        return [0] * len(most)
    places = np.arange(1, width + 1)
    gains = np.where(places <= np.array(most)[:, None], np.array(rates, np.float64)[:, None] ** places, -1.0).ravel()
    order = np.argsort(-gains, kind="stable")[: sum(most)]
    rounds = np.maximum.accumulate(order % width + 1)
    seconds = costs.step(tokens + np.arange(1.0, len(order) + 1)) + rounds * costs.round
    speeds = (sampled + gains[order].cumsum()) / seconds
    best = int(speeds.argmax())
    plain = sampled / float(costs.step(np.array([float(tokens)]))[0])
    if speeds[best] < MARGIN * plain:
        return [0] * len(most)
    return [int(n) for n in np.bincount(order[: best + 1] // width, minlength=len(most))]
