"""A calibration takes its place in a loaded model."""

from __future__ import annotations

import logging

from headway.decisions.calibration import Calibration
from headway.decisions.planner import DecisionsPlanner
from headway.runtime.loaded_model import LoadedModel

_log = logging.getLogger(__name__)


def attach(model: LoadedModel, calibration: Calibration | None) -> None:
    """The model's answers follow `calibration` from now on; None, or a model that decides nothing: no change."""
    planner = model.planners.get("decisions")
    if calibration is None or not isinstance(planner, DecisionsPlanner):
        return
    planner.reader.calibration = calibration
    fitted = ", ".join(f"{key} {value:.3g}" for key, value in calibration.temperatures.items())
    _log.info("calibrated by %s: temperatures %s", calibration.source, fitted)
