"""A calibration beside a package is found when the worker loads the model, after the self-check."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headway.decisions.calibration import Calibration
from headway.decisions.planner import DecisionsPlanner
from headway.errors import ArtifactError
from headway.runtime.calibration.store import beside, write_calibration
from headway.runtime.execution.device_thread import DeviceThread
from headway.runtime.loading.loader import ModelLoader
from headway.runtime.loading.model_entry import ModelEntry
from headway.runtime.one_model import one_model
from headway.runtime.package import Package
from headway.runtime.plugins import PluginSet
from headway.runtime.selfcheck.golden_record import record
from headway.runtime.selfcheck.golden_reference import beside as golden_beside
from headway.runtime.served_model import ServedModel
from headway.runtime.settings import WorkerSettings


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Package:
    monkeypatch.setenv("HEADWAY_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "model"
    folder.mkdir()
    PluginSet.installed().families.named("sparrow", "family").thing.write_fixture(folder, "nano", 3)
    [path] = folder.glob("*.sparrow")
    return Package(str(path), path)


def _load(package: Package) -> ServedModel:
    device = DeviceThread()
    served = ServedModel(ModelEntry(package.reference), "m")
    scheduler: Any = object()
    try:
        ModelLoader(PluginSet.installed(), WorkerSettings(), device, lambda *_: scheduler).load(served)
    finally:
        device.close()
    return served


def _identity(package: Package) -> str:
    with one_model(ModelEntry(package.reference), WorkerSettings(threads=1)) as one:
        record(one, {})
        return one.opened.identity.model_sha256


def test_it_is_applied_and_leaves_the_self_check_alone(package: Package) -> None:
    identity = _identity(package)
    write_calibration(beside(package), Calibration(identity, {"choice": 9.0}), {})
    served = _load(package)
    assert served.golden.status == "matched"
    assert served.running is not None
    planner = served.running.model.planners["decisions"]
    assert isinstance(planner, DecisionsPlanner)
    assert planner.reader.applied_temperature("choice", 3) == 9.0


def test_that_of_another_model_keeps_the_model_from_serving(package: Package) -> None:
    write_calibration(beside(package), Calibration("f" * 64, {"choice": 9.0}), {})
    with pytest.raises(ArtifactError, match="was fitted to another model"):
        _load(package)


def test_requests_of_the_operator_are_no_part_of_the_self_check(package: Package) -> None:
    body = {"state": "it rains", "questions": {"q": {"type": "noul", "instructions": "is it wet?"}}}
    with one_model(ModelEntry(package.reference), WorkerSettings(threads=1)) as one:
        record(one, {"mine": {"surface": "decisions", "body": body}})
    assert "mine" in json.loads(golden_beside(package).read_text())["accelerators"]["cpu"]["answers"]
    assert _load(package).golden.status == "matched"
