"""Temperature, reliability and thresholds of scored examples. Pure functions on arrays.

A temperature minimises the mean negative log-likelihood of softmax(scores / T) (Guo et al., "On Calibration of Modern
Neural Networks", 2017). In s = 1/T that is convex, so the root of its derivative, E_p[score] - score of the truth, is the
minimum. T is kept within LEAST and MOST: data that a model gets all right has its minimum at T = 0, where every guess
would be a certainty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from headway.decisions.reader import FloatArray
from headway.runtime.calibration.scoring import ScoredExample

LEAST: Final = 0.05
MOST: Final = 20.0
BINS: Final = 10
_STEPS: Final = 60  # halvings of the logarithm of the range: to 1e-17 of it


@dataclass(frozen=True, slots=True)
class Scores:
    """`values` [N, most options] filled up with -inf, `truth` [N]."""

    values: FloatArray
    truth: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.truth)


@dataclass(frozen=True, slots=True)
class Bin:
    """Examples whose likeliest answer has a probability in (low, high]; `confidence` and `accuracy` are means over them."""

    low: float
    high: float
    count: int
    confidence: float
    accuracy: float


def stack(examples: Sequence[ScoredExample]) -> Scores:
    """Arrays of examples, which may differ in their number of options."""
    width = max((len(each.scores) for each in examples), default=1)
    values = np.full((len(examples), width), -np.inf)
    for line, each in enumerate(examples):
        values[line, : len(each.scores)] = each.scores
    return Scores(values, np.array([each.truth for each in examples], dtype=np.int64))


def probabilities(scores: Scores, temperatures: float | FloatArray) -> FloatArray:
    """[N, most options]; a temperature for all, or one for each example."""
    scaled = scores.values / np.asarray(temperatures).reshape(-1, 1)
    shifted = np.exp(scaled - scaled.max(1, keepdims=True))
    out: FloatArray = shifted / shifted.sum(1, keepdims=True)
    return out


def fit_temperature(scores: Scores) -> float:
    """The best temperature within LEAST and MOST."""
    known = np.where(np.isfinite(scores.values), scores.values, 0.0)
    right = scores.values[np.arange(len(scores)), scores.truth].mean()
    low, high = np.log(1 / MOST), np.log(1 / LEAST)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        expected = (probabilities(scores, float(np.exp(-middle))) * known).sum(1).mean()
        low, high = (middle, high) if expected <= right else (low, middle)
    return float(np.clip(np.exp(-(low + high) / 2), LEAST, MOST))


def negative_log_likelihood(p: FloatArray, truth: npt.NDArray[np.int64]) -> float:
    """Mean over examples, in nats."""
    return float(-np.log(np.maximum(p[np.arange(len(truth)), truth], 1e-300)).mean())


def reliability(p: FloatArray, truth: npt.NDArray[np.int64]) -> tuple[Bin, ...]:
    """Bins of equal width over the probability of the likeliest answer; empty ones are left out."""
    top, correct = p.max(1), p.argmax(1) == truth
    place = np.minimum(np.ceil(top * BINS).astype(int), BINS) - 1
    return tuple(
        Bin(at / BINS, (at + 1) / BINS, int(inside.sum()), float(top[inside].mean()), float(correct[inside].mean()))
        for at in range(BINS)
        if (inside := place == at).any()
    )


def expected_calibration_error(bins: Sequence[Bin]) -> float:
    """Mean distance of confidence and accuracy, each bin by its share of the examples."""
    total = sum(each.count for each in bins)
    return sum(each.count * abs(each.confidence - each.accuracy) for each in bins) / max(total, 1)


def precision_threshold(top: FloatArray, correct: npt.NDArray[np.bool_], precision: float) -> float | None:
    """The least probability `top` [N] from which on answers are `correct` [N] often enough; None if they never are."""
    order = np.argsort(-top, kind="stable")
    shares = np.cumsum(correct[order]) / np.arange(1, len(order) + 1)
    # A threshold takes all examples of equal probability, so only the last of them counts.
    last = np.append(np.diff(top[order]) < 0, True)
    enough = np.flatnonzero(last & (shares >= precision))
    return float(top[order][enough[-1]]) if len(enough) else None


def above(top: FloatArray, correct: npt.NDArray[np.bool_], threshold: float) -> tuple[float, float | None]:
    """Share of examples that are answered at a threshold, and the precision of those (None: none is)."""
    answered = top >= threshold
    return float(answered.mean()), float(correct[answered].mean()) if answered.any() else None
