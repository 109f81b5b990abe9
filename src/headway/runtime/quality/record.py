"""What `vllm-srun evaluate` found about a model, kept under the model's identity: shipped with Headway, or in the cache."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from headway.artifacts.bounded_json import read_json_object
from headway.artifacts.cache_folders import headway_cache
from headway.decisions.question import QuestionType
from headway.errors import ArtifactError
from headway.runtime.model_facts import ModelFacts
from headway.runtime.model_records import write_json
from headway.runtime.quality.evaluation import TypeQuality
from headway.runtime.quality.labelled_set import NAME

FORMAT: Final = "headway-quality-1"
_UNKNOWN: Final = (
    f"low quality until shown otherwise: no evaluation on the packaged set {NAME} is recorded for this model (vllm-srun evaluate MODEL)"
)


def readout_of(family: str, facts: ModelFacts) -> dict[str, Any]:
    """The family, and the options that it shows on the card. Not the arithmetic, which hardly changes an answer."""
    return {"family": family, **{name: value for name, value in facts.extra.items() if isinstance(value, str | int)}}


def quality_path(model_sha256: str, cache_dir: str | None = None) -> Path:
    """Where the operator's own evaluation of a model is kept."""
    return headway_cache(cache_dir) / "quality" / f"{model_sha256}.json"


def write_quality(path: Path, model_sha256: str, found: Mapping[QuestionType, TypeQuality], readout: Mapping[str, Any]) -> None:
    """`readout`: what the answers depend on besides the weights. Raises OSError."""
    write_json(path, {
        "format": FORMAT, "model_sha256": model_sha256, "set": NAME, "readout": dict(readout),
        "types": {kind: asdict(quality) for kind, quality in found.items()},
    })  # fmt: skip


def quality_notes(model_sha256: str, readout: Mapping[str, Any], cache_dir: str | None = None) -> tuple[str, ...]:
    """Sentences for the card of a decision model: how it does, and "low quality" unless it beats the majority class.
    `readout` as for `write_quality`: what was recorded with other options says nothing."""
    found = read_quality(model_sha256, readout, cache_dir)
    if not found:
        return (_UNKNOWN,)
    return tuple(_sentence(kind, quality) for kind, quality in found.items())


def read_quality(model_sha256: str, readout: Mapping[str, Any], cache_dir: str | None = None) -> dict[str, TypeQuality]:
    """By question type; empty when nothing is recorded for this readout. The operator's own record wins.

    Raises ArtifactError (`quality_invalid`).
    """
    shipped = Path(str(files("headway.runtime.quality").joinpath("records", f"{model_sha256}.json")))
    for path in (quality_path(model_sha256, cache_dir), shipped):
        if path.is_file():
            content = read_json_object(path)
            if content.get("format") != FORMAT:
                raise ArtifactError(f"{path} is no record of an evaluation: its format is {content.get('format')!r:.60}, expected {FORMAT!r}",
                                    reason="quality_invalid", param=str(path), fix="Evaluate again: vllm-srun evaluate MODEL.")  # fmt: skip
            if all(readout.get(name) == value for name, value in content["readout"].items()):
                return {kind: TypeQuality(**each) for kind, each in content["types"].items()}
    return {}


def _sentence(kind: str, quality: TypeQuality) -> str:
    counts = f"{quality.right} of {quality.asked} {kind} questions of {NAME} right, the commonest answers {quality.majority}"
    if quality.beats_majority:
        return f"{kind}: {counts} (p = {quality.p:.1e})"
    return f"low quality for {kind}: {counts} (p = {quality.p:.2g})"
