"""What one run came to, and when one setting is really better than another.

The comparison is Welch's t-test (unequal variances) on repeated runs, together with a least gain that is worth a change of
flags. Sources: B. L. Welch, "The generalization of 'Student's' problem when several different population variances are
involved", Biometrika 34 (1947); degrees of freedom after Welch-Satterthwaite.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log, sqrt
from statistics import fmean, variance
from typing import Final, Literal

CONFIDENCE: Final = 0.95
LEAST_GAIN: Final = 0.02
"""A relative gain below this is no reason to change a flag."""
MET_SHARE: Final = 0.95
"""A setting keeps its promises when so many of its requests meet every --slo."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run. `score`: larger is better (tokens/s, or a latency with its sign turned). `met`: share of requests that met
    every promise, 1 without any. `failure`: why there is no score, "" when there is one."""

    score: float
    met: float = 1.0
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean with the half width of its confidence interval (infinite with one run)."""

    mean: float
    half: float
    runs: int


Comparison = Literal["better", "worse", "unclear"]


def interval(values: Sequence[float]) -> Interval:
    if len(values) < 2:
        return Interval(values[0] if values else float("nan"), float("inf"), len(values))
    half = _quantile(len(values) - 1) * sqrt(variance(values) / len(values))
    return Interval(fmean(values), half, len(values))


def compare(new: Sequence[Outcome], old: Sequence[Outcome]) -> Comparison:
    """Is `new` better than `old`? A setting that cannot run, or breaks its promises, is worse than one that does."""
    usable = _usable(new) - _usable(old)
    if usable or not _usable(new):
        return "better" if usable > 0 else "worse"
    kept = _kept(new) - _kept(old)
    if kept:
        return "better" if kept > 0 else "worse"
    if not _kept(new):
        new_met, old_met = fmean(run.met for run in new), fmean(run.met for run in old)
        if new_met != old_met:
            return "better" if new_met > old_met else "worse"
    return _welch([run.score for run in new], [run.score for run in old])


@dataclass(frozen=True, slots=True)
class Gain:
    """Relative gain with the bounds of its confidence interval: 0.3 = 30 % more, or a latency divided by 1.3. `pairs`: of
    runs that were made in turns."""

    mean: float
    low: float
    high: float
    pairs: int

    @property
    def is_real(self) -> bool:
        return self.low > 0 and self.mean >= LEAST_GAIN


NO_GAIN: Final = Gain(0.0, 0.0, 0.0, 0)


def paired_gain(new: Sequence[Outcome], old: Sequence[Outcome]) -> Gain:
    """Of runs made in turns: Student's t on the logarithms of the ratios within each turn, so that what the machine does
    meanwhile to both of a turn cancels. Scores of one sign; raises ValueError otherwise."""
    pairs = list(zip(new, old, strict=True))
    ratios = [log(ours.score / theirs.score) if theirs.score > 0 else log(theirs.score / ours.score) for ours, theirs in pairs]
    found = interval(ratios)
    return Gain(exp(found.mean) - 1, exp(found.mean - found.half) - 1, exp(found.mean + found.half) - 1 if found.half < 700 else float("inf"), len(pairs))


def holds(new: Sequence[Outcome], old: Sequence[Outcome]) -> Gain:
    """The gain of confirming runs; NO_GAIN when it is not real, or `new` fails or breaks promises that `old` keeps."""
    if not _usable(new) or not _usable(old) or _kept(new) < _kept(old):
        return NO_GAIN
    found = paired_gain(new, old)
    newly_kept = _kept(new) and not _kept(old)  # then the promises are the gain, whatever the score says
    return found if found.is_real or newly_kept else NO_GAIN


def _usable(runs: Sequence[Outcome]) -> bool:
    return bool(runs) and not any(run.failure for run in runs)


def _kept(runs: Sequence[Outcome]) -> bool:
    return fmean(run.met for run in runs) >= MET_SHARE


def _welch(new: Sequence[float], old: Sequence[float]) -> Comparison:
    difference, half = _difference(new, old)
    least = LEAST_GAIN * abs(fmean(old))
    if difference - half > 0 and difference >= least:
        return "better"
    if difference + half < 0 or (half != float("inf") and difference + half < least):
        return "worse"  # it cannot reach the least gain any more
    return "unclear"


def _difference(new: Sequence[float], old: Sequence[float]) -> tuple[float, float]:
    """Difference of the means and the half width of its interval."""
    difference = fmean(new) - fmean(old)
    if len(new) < 2 or len(old) < 2:
        return difference, float("inf")
    parts = variance(new) / len(new), variance(old) / len(old)
    total = sum(parts)
    if total == 0:
        return difference, 0.0
    freedom = total**2 / (parts[0] ** 2 / (len(new) - 1) + parts[1] ** 2 / (len(old) - 1))
    return difference, _quantile(freedom) * sqrt(total)


def _quantile(freedom: float) -> float:
    from scipy.stats import t  # type: ignore[import-untyped]  # a second to import: only when something was measured

    return float(t.ppf((1 + CONFIDENCE) / 2, freedom))
