"""An estimate with the interval in which the truth lies 95 times of 100."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy import stats  # type: ignore[import-untyped]

from headway.evaluation.scoring import Numbers

CONFIDENCE: Final = 0.95


@dataclass(frozen=True, slots=True)
class Interval:
    value: float
    low: float
    high: float


def ratio_interval(sums: Numbers, counts: Numbers) -> Interval:
    """sum(sums) / sum(counts) over independent blocks, with Student's t on the deviation of the blocks from it. Infinite with less than two
    blocks. Source: ratio estimation by linearisation (Cochran, Sampling Techniques, 6.3)."""
    total = float(counts.sum())
    ratio = float(sums.sum()) / total
    blocks = len(sums)
    if blocks < 2:
        return Interval(ratio, -math.inf, math.inf)
    rest = sums - ratio * counts
    error = math.sqrt(blocks / (blocks - 1) * float((rest**2).sum())) / total
    reach = float(stats.t.ppf((1 + CONFIDENCE) / 2, blocks - 1)) * error
    return Interval(ratio, ratio - reach, ratio + reach)


def paired_drop(lost: int, gained: int, asked: int) -> Interval:
    """How much lower the share of right answers is, where `lost` of the `asked` became wrong and `gained` right. Source: Bonett and Price,
    "Adjusted Wald confidence interval for a difference of binomial proportions based on paired data" (2012): unlike the plain one it does not
    shrink to nothing when no answer changed."""
    p, q = (lost + 1) / (asked + 2), (gained + 1) / (asked + 2)
    reach = float(stats.norm.ppf((1 + CONFIDENCE) / 2)) * math.sqrt((p + q - (p - q) ** 2) / (asked + 2))
    return Interval((lost - gained) / asked, max(p - q - reach, -1.0), min(p - q + reach, 1.0))


def mcnemar(lost: int, gained: int) -> float:
    """The chance of so uneven a split, or a more uneven one, if answers got lost and gained alike (exact, two-sided)."""
    changed = lost + gained
    return 1.0 if changed == 0 else float(stats.binomtest(lost, changed).pvalue)


def share_error(right: int, asked: int) -> float:
    """Standard error of a share, as lm-evaluation-harness gives it: sample deviation over the root of the number."""
    share = right / asked
    return math.sqrt(share * (1 - share) / (asked - 1)) if asked > 1 else math.nan


def summed(values: Numbers, places: np.ndarray, blocks: int) -> Numbers:
    """Sums of `values` by block."""
    return np.bincount(places, weights=values, minlength=blocks).astype(np.float64)
