"""Where calibrations are kept: beside a local package, else in Headway's cache; always with the identity of the model.

`{"format": "headway-calibration-1", "model_sha256": ..., "temperatures": {"choice": T, "choice:3-5": T, ...},
"thresholds": {"choice": {"precision": P, "threshold": t}}, "report": {...}}`; `report` is for people.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NoReturn

from headway.artifacts.bounded_json import read_json_object
from headway.artifacts.cache_folders import headway_cache
from headway.decisions.calibration import Calibration, Threshold
from headway.errors import ArtifactError
from headway.runtime import model_records
from headway.runtime.package import Package

FORMAT: Final = "headway-calibration-1"
FILE_NAME: Final = "headway-calibration.json"
_FIX: Final = "Run `vllm-srun calibrate` again, or delete the file."


def find_calibration(package: Package, model_sha256: str, cache_dir: str | None = None) -> Calibration | None:
    """What was fitted for this model, or None.

    Raises ArtifactError: `calibration_invalid`, and `calibration_of_another_model` for a file beside the package that was
    fitted to other weights: answers would be wrong without any sign of it.
    """
    for path in (beside(package), cached(model_sha256, cache_dir)):
        if path.is_file():
            found = read_calibration(path)
            if found.model_sha256 != model_sha256:
                raise ArtifactError(
                    f"{path} was fitted to another model: it names {found.model_sha256[:16]}..., the package is {model_sha256[:16]}...",
                    reason="calibration_of_another_model", param=str(path), fix=_FIX,
                )  # fmt: skip
            return found
    return None


def beside(package: Package) -> Path:
    """The file of a package that can be written to."""
    return model_records.beside(package, FILE_NAME)


def cached(model_sha256: str, cache_dir: str | None = None) -> Path:
    """The file of a model whose folder is not ours to write to."""
    return headway_cache(cache_dir) / "calibration" / f"{model_sha256}.json"


def place_for(package: Package, model_sha256: str, cache_dir: str | None = None) -> Path:
    """Where a new calibration goes: beside the package if that is ours to write to, else into the cache."""
    path = beside(package)
    return path if model_records.is_ours(package, path, cache_dir) else cached(model_sha256, cache_dir)


def read_calibration(path: Path) -> Calibration:
    """Raises ArtifactError (`calibration_invalid`, and what JSON files raise)."""
    content = read_json_object(path)
    if content.get("format") != FORMAT:
        _invalid(path, f"its format is {content.get('format')!r:.60}, expected {FORMAT!r}")
    identity = content.get("model_sha256")
    temperatures, thresholds = content.get("temperatures"), content.get("thresholds", {})
    if not isinstance(identity, str):
        _invalid(path, "it names no model")
    if not isinstance(temperatures, Mapping) or not all(_positive(value) for value in temperatures.values()):
        _invalid(path, "temperatures must be an object of positive numbers")
    if not isinstance(thresholds, Mapping):
        _invalid(path, "thresholds must be an object")
    return Calibration(
        identity, {key: float(value) for key, value in temperatures.items()},
        {kind: _threshold(path, value) for kind, value in thresholds.items()}, str(path),
    )  # fmt: skip


def write_calibration(path: Path, calibration: Calibration, report: Mapping[str, Any]) -> None:
    """Replaces the file at once. Raises OSError."""
    content = {
        "format": FORMAT, "model_sha256": calibration.model_sha256, "temperatures": dict(calibration.temperatures),
        "thresholds": {kind: {"precision": each.precision, "threshold": each.threshold} for kind, each in calibration.thresholds.items()},
        "report": report,
    }  # fmt: skip
    model_records.write_json(path, content)


def _threshold(path: Path, value: Any) -> Threshold:
    if not isinstance(value, Mapping) or not (_share(value.get("precision")) and _share(value.get("threshold"))):
        _invalid(path, "a threshold must have precision and threshold, both from 0 to 1")
    return Threshold(float(value["precision"]), float(value["threshold"]))


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _positive(value: Any) -> bool:
    return _number(value) and value > 0


def _share(value: Any) -> bool:
    return _number(value) and 0 <= value <= 1


def _invalid(path: Path, problem: str) -> NoReturn:
    raise ArtifactError(f"{path} is no calibration: {problem}", reason="calibration_invalid", param=str(path), fix=_FIX)
