"""From scored examples to temperatures, thresholds, and what they are worth on examples that were held out."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from headway.decisions.buckets import BUCKETS, bucket_key
from headway.decisions.calibration import Calibration, Threshold
from headway.decisions.question import QuestionType
from headway.decisions.reader import FloatArray
from headway.errors import ConfigError
from headway.runtime.calibration.fit import (
    LEAST,
    MOST,
    Bin,
    above,
    expected_calibration_error,
    fit_temperature,
    negative_log_likelihood,
    precision_threshold,
    probabilities,
    reliability,
    stack,
)
from headway.runtime.calibration.scoring import ScoredExample

TYPES: Final[tuple[QuestionType, ...]] = ("choice", "noul", "score", "set")
_NEAR: Final = 1.001
TemperatureOf = Callable[[QuestionType, int], float]


@dataclass(frozen=True, slots=True)
class FitSettings:
    """`held_out`: share of the states that are only measured on. `least`: examples that a bucket needs to have a temperature
    of its own. `precision`: what a threshold shall promise, None = no thresholds."""

    held_out: float = 0.3
    least: int = 50
    precision: float | None = None


@dataclass(frozen=True, slots=True)
class Quality:
    """On the held-out examples. `ece`: expected calibration error; `nll` in nats."""

    accuracy: float
    nll: float
    ece: float
    bins: tuple[Bin, ...]


@dataclass(frozen=True, slots=True)
class ThresholdReport:
    """`threshold` was chosen on the fitted examples, None if no threshold gives the precision; the rest is measured on the
    held-out ones: share of questions that are answered (of labels that are selected, for sets), precision of those."""

    wanted: float
    threshold: float | None
    answered: float = 0.0
    precision: float | None = None

    @property
    def abstained(self) -> float:
        """Share of questions below the threshold."""
        return 1.0 - self.answered


@dataclass(frozen=True, slots=True)
class TypeReport:
    """One question type. `fitted` and `held_out` count examples; labels of sets are one each."""

    kind: QuestionType
    fitted: int
    held_out: int
    before: Quality | None
    after: Quality | None
    threshold: ThresholdReport | None


@dataclass(frozen=True, slots=True)
class FitReport:
    """`temperatures` by type and by bucket; `at_bounds`: those that had to be cut, so that the data says little about them;
    `unfitted`: buckets with some examples, but too few, and how many."""

    temperatures: Mapping[str, float]
    at_bounds: tuple[str, ...]
    unfitted: Mapping[str, int]
    types: tuple[TypeReport, ...]

    def calibration(self, model_sha256: str, source: str) -> Calibration:
        thresholds: dict[str, Threshold] = {
            each.kind: Threshold(each.threshold.wanted, each.threshold.threshold)
            for each in self.types
            if each.threshold is not None and each.threshold.threshold is not None
        }
        return Calibration(model_sha256, self.temperatures, thresholds, source)

    def as_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def fit_all(examples: Sequence[ScoredExample], packaged: TemperatureOf, settings: FitSettings) -> FitReport:
    """Fit on one part of the states, measure on the other. `packaged` are the temperatures that were there before.

    Raises ConfigError (`too_few_examples`) when nothing can be fitted.
    """
    fitting = [each for each in examples if each.share >= settings.held_out]
    held_out = [each for each in examples if each.share < settings.held_out]
    temperatures, unfitted = _temperatures(fitting, settings.least)
    if not temperatures:
        raise ConfigError(
            f"no question type has {settings.least} examples to fit a temperature to: {_counts(fitting)}", reason="too_few_examples", param="data",
            fix="Give more examples, or a lower --min-examples.",
        )  # fmt: skip
    fresh = Calibration("", temperatures)

    def applied(kind: QuestionType, options: int) -> float:
        return fresh.temperature(kind, options) or packaged(kind, options)

    types = [kind for kind in TYPES if any(each.kind == kind for each in examples)]
    at_bounds = tuple(key for key, value in temperatures.items() if not LEAST * _NEAR < value < MOST / _NEAR)
    return FitReport(temperatures, at_bounds, unfitted, tuple(_type(kind, fitting, held_out, packaged, applied, settings) for kind in types))


def _temperatures(fitting: Sequence[ScoredExample], least: int) -> tuple[dict[str, float], dict[str, int]]:
    found: dict[str, float] = {}
    unfitted: dict[str, int] = {}
    for kind in TYPES:
        of_kind = [each for each in fitting if each.kind == kind]
        if not of_kind:
            continue
        buckets = [f"{kind}:{bucket}" for bucket in BUCKETS]
        for key in [kind, *buckets]:
            inside = of_kind if key == kind else [each for each in of_kind if bucket_key(kind, each.options) == key]
            if len(inside) >= least:
                found[key] = fit_temperature(stack(inside))
            elif inside:
                unfitted[key] = len(inside)
    return found, unfitted


def _type(
    kind: QuestionType, fitting: Sequence[ScoredExample], held_out: Sequence[ScoredExample], packaged: TemperatureOf, applied: TemperatureOf,
    settings: FitSettings,
) -> TypeReport:  # fmt: skip
    fitted, measured = ([each for each in part if each.kind == kind] for part in (fitting, held_out))
    threshold = None
    if settings.precision is not None:
        threshold = _threshold(fitted, measured, applied, settings.precision)
    return TypeReport(kind, len(fitted), len(measured), _quality(measured, packaged), _quality(measured, applied), threshold)


def _quality(examples: Sequence[ScoredExample], temperature: TemperatureOf) -> Quality | None:
    if not examples:
        return None
    p, truth = _answers(examples, temperature)
    bins = reliability(p, truth)
    return Quality(float((p.argmax(1) == truth).mean()), negative_log_likelihood(p, truth), expected_calibration_error(bins), bins)


def _threshold(fitted: Sequence[ScoredExample], measured: Sequence[ScoredExample], temperature: TemperatureOf, wanted: float) -> ThresholdReport:
    chosen = precision_threshold(*_claims(fitted, temperature), wanted) if fitted else None
    if chosen is None or not measured:
        return ThresholdReport(wanted, chosen)
    answered, precision = above(*_claims(measured, temperature), chosen)
    return ThresholdReport(wanted, chosen, answered, precision)


def _claims(examples: Sequence[ScoredExample], temperature: TemperatureOf) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """What a threshold is about: the probability of the likeliest answer, and of a label of a set that it belongs to it; and
    whether that is so."""
    p, truth = _answers(examples, temperature)
    if examples[0].kind == "set":
        return p[:, 1], truth == 1
    return p.max(1), p.argmax(1) == truth


def _answers(examples: Sequence[ScoredExample], temperature: TemperatureOf) -> tuple[FloatArray, npt.NDArray[np.int64]]:
    scores = stack(examples)
    return probabilities(scores, np.array([temperature(each.kind, each.options) for each in examples])), scores.truth


def _counts(examples: Sequence[ScoredExample]) -> str:
    counts = {kind: sum(each.kind == kind for each in examples) for kind in TYPES}
    return ", ".join(f"{count} {kind}" for kind, count in counts.items() if count) or "there are none"
