"""Recorded answers of the self-check: a file beside the package, in the cache, or shipped with Headway.

`{"format": "headway-golden-1", "model_sha256": ..., "accelerators": {"cpu": {"answers": {NAME: BODY}, "kernels": {NAME: VERSION},
"requests": {NAME: {"surface": SURFACE, "body": BODY}}, "recorded": {...}}}}`. `requests` are those of the operator, the answers to
which are beside the answers to the default ones; `recorded` says by what versions, on what CPU, in what arithmetic.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from headway.artifacts.bounded_json import read_json_object
from headway.artifacts.cache_folders import headway_cache
from headway.errors import ArtifactError
from headway.runtime import model_records
from headway.runtime.model_records import write_json
from headway.runtime.package import Package

FORMAT: Final = "headway-golden-1"
FILE_NAME: Final = "golden.json"


@dataclass(frozen=True, slots=True)
class GoldenReference:
    """`answers` by the name of their request, `kernels` that they were recorded with, `source` is where they were found.

    `requests` by name are those that are not asked by default; `recorded` are facts about the machine that answered.
    """

    source: str
    model_sha256: str
    answers: Mapping[str, Any]
    kernels: Mapping[str, str] = field(default_factory=dict)
    requests: Mapping[str, Any] = field(default_factory=dict)
    recorded: Mapping[str, Any] = field(default_factory=dict)


def find_reference(package: Package, model_sha256: str, accelerator: str, cache_dir: str | None = None) -> GoldenReference | None:
    """The answers recorded for this model on that kind of device: of the package, of the cache, or shipped.

    A file for another model (the package was changed since) counts as none. Raises ArtifactError for a damaged file.
    """
    for path in (beside(package), cached(model_sha256, cache_dir), _shipped(model_sha256)):
        if path is not None and path.is_file():
            found = read_reference(path, accelerator)
            if found is not None and found.model_sha256 == model_sha256:
                return found
    return None


def beside(package: Package) -> Path:
    """The file of a package that can be written to."""
    return model_records.beside(package, FILE_NAME)


def cached(model_sha256: str, cache_dir: str | None = None) -> Path:
    """The file of a model whose folder is not ours to write to."""
    return headway_cache(cache_dir) / "golden" / f"{model_sha256}.json"


def write_reference(
    path: Path, model_sha256: str, accelerator: str, answers: Mapping[str, Any], kernels: Mapping[str, str], *,
    requests: Mapping[str, Any] | None = None, recorded: Mapping[str, Any] | None = None,
) -> None:  # fmt: skip
    """Add or replace what was recorded on one kind of device; answers of another model are dropped."""
    content: dict[str, Any] = {}
    if path.is_file():
        content = read_json_object(path)
    if content.get("format") != FORMAT or content.get("model_sha256") != model_sha256:
        content = {"format": FORMAT, "model_sha256": model_sha256, "accelerators": {}}
    content["accelerators"][accelerator] = {
        "answers": dict(answers), "kernels": dict(kernels), "requests": dict(requests or {}), "recorded": dict(recorded or {}),
    }  # fmt: skip
    write_json(path, content)


def _shipped(model_sha256: str) -> Path:
    return Path(str(files("headway.runtime.selfcheck").joinpath("golden_records", f"{model_sha256}.json")))


def read_reference(path: Path, accelerator: str) -> GoldenReference | None:
    """What a file holds for that kind of device. Raises ArtifactError (`golden_invalid`)."""
    content = read_json_object(path)
    if content.get("format") != FORMAT:
        raise ArtifactError(f"{path} is no file of recorded answers: its format is {content.get('format')!r:.60}, expected {FORMAT!r}",
                            reason="golden_invalid", param=str(path), fix="Record it again: vllm-srun golden record MODEL.")  # fmt: skip
    recorded = content.get("accelerators", {}).get(accelerator)
    if not isinstance(recorded, dict) or not isinstance(recorded.get("answers"), dict):
        return None
    return GoldenReference(
        str(path), str(content.get("model_sha256")), recorded["answers"], recorded.get("kernels") or {}, recorded.get("requests") or {},
        recorded.get("recorded") or {},
    )  # fmt: skip
