"""Recorded answers of the self-check: a file beside the package, in the cache, or shipped with Headway.

`{"format": "headway-golden-1", "model_sha256": ..., "accelerators": {"cpu": {"answers": {NAME: BODY}, "kernels": {NAME: VERSION}}}}`
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from headway.artifacts.bounded_json import read_json_object
from headway.artifacts.cache_folders import headway_cache
from headway.errors import ArtifactError
from headway.runtime.package import Package

FORMAT: Final = "headway-golden-1"
FILE_NAME: Final = "golden.json"


@dataclass(frozen=True, slots=True)
class GoldenReference:
    """`answers` by the name of their request, `kernels` that they were recorded with, `source` is where they were found."""

    source: str
    model_sha256: str
    answers: Mapping[str, Any]
    kernels: Mapping[str, str] = field(default_factory=dict)


def find_reference(package: Package, model_sha256: str, accelerator: str, cache_dir: str | None = None) -> GoldenReference | None:
    """The answers recorded for this model on that kind of device: of the package, of the cache, or shipped.

    A file for another model (the package was changed since) counts as none. Raises ArtifactError for a damaged file.
    """
    for path in (beside(package), cached(model_sha256, cache_dir), _shipped(model_sha256)):
        if path is not None and path.is_file():
            found = _read(path, accelerator)
            if found is not None and found.model_sha256 == model_sha256:
                return found
    return None


def beside(package: Package) -> Path:
    """The file in the folder of the package, or next to a package that is one file."""
    return package.path / FILE_NAME if package.is_folder else package.path.with_name(f"{package.path.name}.{FILE_NAME}")


def cached(model_sha256: str, cache_dir: str | None = None) -> Path:
    """The file of a model whose folder is not ours to write to."""
    return headway_cache(cache_dir) / "golden" / f"{model_sha256}.json"


def write_reference(path: Path, model_sha256: str, accelerator: str, answers: Mapping[str, Any], kernels: Mapping[str, str]) -> None:
    """Add or replace what was recorded on one kind of device; answers of another model are dropped."""
    content: dict[str, Any] = {}
    if path.is_file():
        content = read_json_object(path)
    if content.get("format") != FORMAT or content.get("model_sha256") != model_sha256:
        content = {"format": FORMAT, "model_sha256": model_sha256, "accelerators": {}}
    content["accelerators"][accelerator] = {"answers": dict(answers), "kernels": dict(kernels)}
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.{os.getpid()}.new")
    fresh.write_text(json.dumps(content, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")
    fresh.replace(path)


def _shipped(model_sha256: str) -> Path:
    return Path(str(files("headway.runtime").joinpath("golden", f"{model_sha256}.json")))


def _read(path: Path, accelerator: str) -> GoldenReference | None:
    content = read_json_object(path)
    if content.get("format") != FORMAT:
        raise ArtifactError(f"{path} is no file of recorded answers: its format is {content.get('format')!r:.60}, expected {FORMAT!r}",
                            reason="golden_invalid", param=str(path), fix="Record it again: vllm-srun golden record MODEL.")  # fmt: skip
    recorded = content.get("accelerators", {}).get(accelerator)
    if not isinstance(recorded, dict) or not isinstance(recorded.get("answers"), dict):
        return None
    return GoldenReference(str(path), str(content.get("model_sha256")), recorded["answers"], recorded.get("kernels") or {})
