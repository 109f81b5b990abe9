"""Temperatures, reliability and thresholds on data whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from headway.errors import ConfigError
from headway.runtime.calibration import fit
from headway.runtime.calibration.report import FitReport, FitSettings, fit_all
from headway.runtime.calibration.scoring import ScoredExample
from tests.runtime.calibration.planted import PlantedModel, examples

PLANTED = {"choice:2": 0.6, "choice:3-5": 1.7, "choice:6-10": 3.0, "noul": 2.2, "score:3-5": 0.8, "set": 1.4}


@pytest.fixture(scope="module")
def report() -> FitReport:
    data = [*examples("choice", 2, 20_000, 0.6, 1), *examples("choice", 4, 6000, 1.7, 2), *examples("choice", 7, 6000, 3.0, 3)]
    data += [*examples("noul", 2, 20_000, 2.2, 4), *examples("score", 5, 6000, 0.8, 5), *examples("set", 2, 20_000, 1.4, 6)]
    return fit_all([*data, *examples("choice", 11, 30, 1.0, 7)], PlantedModel().reader.temperature, FitSettings(precision=0.9))


@pytest.mark.parametrize(("key", "planted"), PLANTED.items())
def test_a_planted_temperature_is_recovered(report: FitReport, key: str, planted: float) -> None:
    assert report.temperatures[key] == pytest.approx(planted, rel=0.05)


def test_buckets_with_too_few_examples_are_named(report: FitReport) -> None:
    assert list(report.unfitted) == ["choice:11+"]
    assert report.unfitted["choice:11+"] < 30
    calibration = report.calibration("sha", "file")
    assert calibration.temperature("choice", 20) == report.temperatures["choice"]
    assert calibration.temperature("choice", 4) == report.temperatures["choice:3-5"]
    assert calibration.temperature("span", 4) is None


def test_temperatures_at_their_bounds_are_named(report: FitReport) -> None:
    assert report.at_bounds == ()
    sure = [ScoredExample("noul", 2, np.array([0.0, 3.0]), 1, share) for share in np.linspace(0, 0.999, 200)]
    found = fit_all(sure, PlantedModel().reader.temperature, FitSettings())
    assert (found.at_bounds, found.temperatures["noul"]) == (("noul",), pytest.approx(fit.LEAST))


def test_what_is_held_out_is_better_calibrated_after_than_before(report: FitReport) -> None:
    for each in report.types:
        assert each.before is not None
        assert each.after is not None
        assert each.after.nll < each.before.nll
        assert each.after.ece < min(each.before.ece, 0.03)
        assert each.after.accuracy == each.before.accuracy
        assert each.held_out == pytest.approx(0.3 * (each.fitted + each.held_out), rel=0.1)
        assert sum(one.count for one in each.after.bins) == each.held_out


def test_a_threshold_gives_the_wanted_precision(report: FitReport) -> None:
    noul = next(each for each in report.types if each.kind == "noul")
    assert noul.threshold is not None
    assert noul.threshold.precision == pytest.approx(0.9, abs=0.03)
    assert noul.threshold.abstained == pytest.approx(1 - noul.threshold.answered)
    assert 0 < noul.threshold.abstained < 1
    labels = next(each for each in report.types if each.kind == "set").threshold
    assert labels is not None
    assert labels.precision == pytest.approx(0.9, abs=0.03)
    assert labels.answered < 0.5  # labels that do not belong to the set are not selected, however sure that is


def test_too_little_data_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"no question type has 50 examples to fit a temperature to: [0-9]+ choice") as error:
        fit_all(examples("choice", 3, 20, 1.0, 1), PlantedModel().reader.temperature, FitSettings())
    assert error.value.reason == "too_few_examples"


def test_the_temperature_is_the_minimum_of_the_likelihood() -> None:
    """Found by an optimiser of scipy that knows nothing of derivatives."""
    chance = np.random.default_rng(3)
    scored = [ScoredExample("choice", n, chance.normal(0, 3, n), int(chance.integers(n)), 0.0) for n in (2, 3, 9) * 40]
    scored += [ScoredExample("choice", 3, np.array([2.0, 0.0, -1.0]), 0, 0.0)] * 60
    scores = fit.stack(scored)

    def loss(log_t: float) -> float:
        return fit.negative_log_likelihood(fit.probabilities(scores, float(np.exp(log_t))), scores.truth)

    best = minimize_scalar(loss, bounds=(np.log(fit.LEAST), np.log(fit.MOST)), method="bounded", options={"xatol": 1e-9})
    assert fit.fit_temperature(scores) == pytest.approx(float(np.exp(best.x)), rel=1e-4)


@pytest.mark.parametrize(("truth", "bound"), [(0, fit.LEAST), (1, fit.MOST)], ids=["all right", "all wrong"])
def test_temperatures_stay_within_their_bounds(truth: int, bound: float) -> None:
    scores = fit.stack([ScoredExample("choice", 2, np.array([3.0, -3.0]), truth, 0.0)] * 60)
    assert fit.fit_temperature(scores) == pytest.approx(bound)


def test_reliability_by_hand() -> None:
    p = np.array([[0.95, 0.05], [0.95, 0.05], [0.1, 0.9], [0.55, 0.45]])
    bins = fit.reliability(p, np.array([0, 1, 1, 0]))
    assert [(each.low, each.high, each.count) for each in bins] == [(0.5, 0.6, 1), (0.8, 0.9, 1), (0.9, 1.0, 2)]
    assert bins[-1].accuracy == 0.5
    assert fit.expected_calibration_error(bins) == pytest.approx((0.45 + 0.1 + 2 * 0.45) / 4)


def test_a_threshold_takes_all_of_equal_probability() -> None:
    top, correct = np.array([0.6, 0.8, 0.9, 0.8]), np.array([True, False, True, True])
    assert fit.precision_threshold(top, correct, 0.75) == 0.6
    assert fit.precision_threshold(top, correct, 0.9) == 0.9
    assert fit.precision_threshold(top, ~correct, 0.9) is None
    assert fit.above(top, correct, 0.8) == (0.75, pytest.approx(2 / 3))
    assert fit.above(top, correct, 0.95) == (0.0, None)
