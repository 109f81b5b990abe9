"""Where calibrations go, what is refused when they are read, and what they change."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headway.decisions.buckets import bucket_of
from headway.decisions.calibration import Calibration, Threshold
from headway.errors import ArtifactError
from headway.runtime.calibration.attach import attach
from headway.runtime.calibration.store import FILE_NAME, FORMAT, cached, find_calibration, place_for, write_calibration
from headway.runtime.package import Package
from headway.runtime.plan import run_plan
from headway.wire.decision_body import read_decision_body
from tests.runtime.calibration.planted import PlantedModel, question

SHA = "a" * 64
FITTED = Calibration(SHA, {"choice": 2.0, "choice:3-5": 4.0}, {"choice": Threshold(0.9, 0.7)})


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Package:
    monkeypatch.setenv("HEADWAY_CACHE", str(tmp_path / "cache"))
    (tmp_path / "model").mkdir()
    return Package("model", tmp_path / "model")


@pytest.mark.parametrize(("options", "bucket"), [(1, "2"), (2, "2"), (3, "3-5"), (5, "3-5"), (6, "6-10"), (10, "6-10"), (11, "11+"), (255, "11+")])
def test_buckets(options: int, bucket: str) -> None:
    assert bucket_of(options) == bucket


def test_what_was_written_is_found(package: Package) -> None:
    path = place_for(package, SHA)
    assert path == package.path / FILE_NAME
    write_calibration(path, FITTED, {"note": "x"})
    found = find_calibration(package, SHA)
    assert found is not None
    assert (found.temperatures, found.thresholds, found.source) == (FITTED.temperatures, FITTED.thresholds, str(path))
    assert found.temperature("choice", 4) == 4.0
    assert found.temperature("choice", 2) == 2.0
    assert found.temperature("score", 2) is None
    assert [entry.name for entry in package.path.iterdir()] == [FILE_NAME]


def test_a_package_of_one_file_has_its_calibration_next_to_it(package: Package) -> None:
    single = Package("m", package.path / "m.sparrow")
    assert place_for(single, SHA) == package.path / f"m.sparrow.{FILE_NAME}"


def test_folders_that_are_not_ours_to_write_to(package: Package, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert place_for(Package("r", package.path, repo="a/b"), SHA) == cached(SHA)
    shipped = tmp_path / "cache" / "models" / "m"
    shipped.mkdir(parents=True)
    assert place_for(Package("m", shipped), SHA) == cached(SHA)
    monkeypatch.setattr("os.access", lambda path, mode: False)
    assert place_for(package, SHA) == cached(SHA)
    monkeypatch.undo()
    (package.path / "MODEL_MANIFEST.json").write_text("{}")
    assert place_for(package, SHA) == cached(SHA, None)


def test_the_cache_is_asked_by_identity(package: Package) -> None:
    write_calibration(cached(SHA), FITTED, {})
    assert find_calibration(package, "b" * 64) is None
    assert find_calibration(package, SHA) is not None


def test_a_calibration_of_another_model_is_refused(package: Package) -> None:
    write_calibration(place_for(package, SHA), FITTED, {})
    with pytest.raises(ArtifactError, match=r"was fitted to another model: it names aaaa.*, the package is bbbb") as error:
        find_calibration(package, "b" * 64)
    assert error.value.reason == "calibration_of_another_model"


_GOOD: dict[str, Any] = {"format": FORMAT, "model_sha256": SHA, "temperatures": {"choice": 1}, "thresholds": {}}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": "other"}, "its format is 'other'"),
        ({"model_sha256": None}, "it names no model"),
        ({"temperatures": {"choice": 0}}, "positive numbers"),
        ({"temperatures": {"choice": True}}, "positive numbers"),
        ({"temperatures": [1]}, "positive numbers"),
        ({"thresholds": []}, "thresholds must be an object"),
        ({"thresholds": {"choice": {"precision": 2, "threshold": 0.5}}}, "from 0 to 1"),
    ],
)  # fmt: skip
def test_damaged_files(package: Package, change: dict[str, Any], said: str) -> None:
    (package.path / FILE_NAME).write_text(json.dumps(_GOOD | change))
    with pytest.raises(ArtifactError, match=said) as error:
        find_calibration(package, SHA)
    assert error.value.reason == "calibration_invalid"


def _answer(model: PlantedModel, kind: str, scores: list[float], **more: Any) -> dict[str, Any]:
    body = {"state": scores, "questions": {"q": question(kind, len(scores)) | more}}
    answered: dict[str, Any] = run_plan(model, model.planners["decisions"](read_decision_body(body)))
    return answered


def _ask(model: PlantedModel, options: int) -> dict[str, float]:
    probabilities: dict[str, float] = _answer(model, "choice", [1.0, 0.0, 0.0, 0.0][:options])["answers"]["q"]["probabilities"]
    return probabilities


def test_answers_follow_the_calibration_and_the_package_where_nothing_was_fitted() -> None:
    """p(first of n) = e^(1/T) / (e^(1/T) + n - 1), by hand; the package's own temperature is 1.5."""
    model = PlantedModel()
    assert _ask(model, 2)["k0"] == pytest.approx(0.66075637)
    attach(model, Calibration(SHA, {"choice:3-5": 4.0}))
    assert _ask(model, 4)["k0"] == pytest.approx(0.29972404)
    assert _ask(model, 2)["k0"] == pytest.approx(0.66075637)
    attach(model, Calibration(SHA, {"choice": 0.5}))
    assert _ask(model, 2)["k0"] == pytest.approx(0.88079708)


def test_answers_below_the_threshold_say_so() -> None:
    model = PlantedModel()
    assert "x_abstain" not in _answer(model, "noul", [0.0, 1.0])["answers"]["q"]
    limit = {"noul": Threshold(0.9, 0.7), "set": Threshold(0.9, 0.75)}
    attach(model, Calibration(SHA, {"noul": 1.0, "set": 1.0}, limit))
    assert _answer(model, "noul", [0.0, 0.9])["answers"]["q"]["x_abstain"] is False
    assert _answer(model, "noul", [0.0, -0.9])["answers"]["q"]["x_abstain"] is False
    assert _answer(model, "noul", [0.0, 0.8])["answers"]["q"]["x_abstain"] is True
    assert "x_abstain" not in _answer(model, "choice", [0.0, 0.1])["answers"]["q"]
    found = _answer(model, "set", [1.0, 1.2])
    assert (found["sets"]["q"]["selected"], found["thresholds"]["q"]) == (["k1"], 0.75)
    assert _answer(model, "set", [1.0, 1.2], threshold=0.6)["sets"]["q"]["selected"] == ["k0", "k1"]
