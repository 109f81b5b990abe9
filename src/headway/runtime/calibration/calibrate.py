"""calibrate: labelled examples -> a calibration beside the model."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headway.artifacts.resumable_download import file_sha256
from headway.decisions.planner import DecisionsPlanner
from headway.errors import ConfigError
from headway.runtime.calibration.labelled import LabelledState
from headway.runtime.calibration.report import FitReport, FitSettings, fit_all
from headway.runtime.calibration.scoring import score_examples
from headway.runtime.calibration.store import beside, cached, place_for, write_calibration
from headway.runtime.one_model import OneModel
from headway.version import __version__


@dataclass(frozen=True, slots=True)
class Calibrated:
    """`path` is where the calibration was written; `skipped` counts questions without scores, by reason."""

    path: Path
    model_sha256: str
    report: FitReport
    skipped: dict[str, int]

    def as_json(self) -> dict[str, Any]:
        return {"path": str(self.path), "model_sha256": self.model_sha256, "skipped": self.skipped, **self.report.as_json()}


def calibrate(
    one: OneModel, data: Path, states: list[LabelledState], settings: FitSettings, cache_dir: str | None = None,
    progress: Callable[[int], object] = lambda done: None,
) -> Calibrated:  # fmt: skip
    """Score `states` (read from `data`), fit, and write. A calibration that was there is replaced, not built upon.

    Raises ConfigError: `no_decisions` for a model that answers no questions, `too_few_examples`.
    """
    opened = one.opened
    planner = opened.model.planners.get("decisions")
    if not isinstance(planner, DecisionsPlanner):
        raise ConfigError(f"{opened.package.reference} answers no questions, so there is nothing to calibrate", reason="no_decisions", param="model")
    identity = opened.identity.model_sha256
    path = place_for(opened.package, identity, cache_dir)
    if path == cached(identity, cache_dir) and (stale := beside(opened.package)).is_file():
        raise ConfigError(f"{stale} is in the way: it would win over {path}", reason="calibration_shadowed", param=str(stale), fix="Delete it.")
    scored = one.device.call(lambda: score_examples(opened.model, planner, states, progress))
    report = fit_all(scored.examples, planner.reader.temperature, settings)
    origin = {
        "headway": __version__, "fitted_at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"), "data_sha256": file_sha256(data),
        "dtype": opened.model.facts.dtype, "held_out": settings.held_out, "skipped": dict(scored.skipped),
    }  # fmt: skip
    write_calibration(path, report.calibration(identity, str(path)), origin | report.as_json())
    return Calibrated(path, identity, report, dict(scored.skipped))
