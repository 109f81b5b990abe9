"""What a Decision 1.0 package says of itself: its config.json is a map of its files. Format: docs/families.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any, Final

from headway.artifacts.bounded_json import read_json_object
from headway.artifacts.quantization_claim import claim_of_config
from headway.errors import ArtifactError, PackageError
from headway.runtime.loading.manifests import Verified, digest_of_digests, read_file_list
from headway.runtime.package import Package
from headway.runtime.readers.package_tensors import PackageTensors
from headway.runtime.readers.unpublished import layout_not_published, not_of_the_format

POINTER: Final = {"decision_format": "vllm-sr-decision", "format_version": 1}
POINTER_FILE: Final = "config.json"
MANIFEST: Final = "MANIFEST.json"
QUESTIONS: Final = "QUESTIONS.json"
QWEN: Final = "qwen3.5-decision"
VELA: Final = "vela-encoder"
TYPES: Final = ("choice", "noul", "score")
MAX_TOKENS: Final = {QWEN: 16384, VELA: 1024}
_DECISION_WEIGHTS: Final = {QWEN: ("decision_head",), VELA: ("choice_encoder", "score_encoder", "decision_heads")}
_PROMPT: Final = "structured-segmented-candidate-endpoints-global-query-v2"
_ARM: Final = {"arm": "all22", "training_arm": "S22", "type_order": list(TYPES)}


@dataclass(frozen=True, slots=True)
class Decision1Package:
    """Names of files are relative to the folder. `model_files` decide answers: the model's identity is their digests."""

    folder: Path
    runtime: str
    model_name: str
    config: Mapping[str, Any]
    backbone_config: Mapping[str, Any]
    backbone_weights: tuple[str, ...]
    tokenizer: Mapping[str, str]
    decision_weights: Mapping[str, str]
    temperatures: Mapping[str, float]
    model_files: tuple[str, ...]

    @property
    def max_tokens(self) -> int:
        return MAX_TOKENS[self.runtime]

    def tensors(self) -> PackageTensors:
        """Of all weight files; headers only."""
        return PackageTensors(self.folder, (*self.backbone_weights, *self.decision_weights.values()), claim_of_config(self.backbone_config, "backbone.config"))

    @property
    def loaded_files(self) -> tuple[str, ...]:
        extras = [name for name in (MANIFEST, QUESTIONS) if (self.folder / name).is_file()]
        return (POINTER_FILE, *(name for name in self.model_files if name != POINTER_FILE), *extras)


def is_decision1(package: Package) -> bool:
    """Reads config.json alone. Packages of a runtime that is not known are recognised too, and refused by `read_package`."""
    try:
        return all(package.config.get(key) == value for key, value in POINTER.items())
    except ArtifactError:
        return False


def read_package(package: Package) -> Decision1Package:
    """Raises PackageError: `invalid_package`, `layout_not_published`, `invalid_json`, `missing_file`."""
    pointer, folder = package.config, package.path
    runtime = pointer.get("runtime_family")
    if runtime not in (QWEN, VELA):
        raise layout_not_published(f"Decision 1.0 packages for the runtime {runtime!r:.60} (known: {QWEN}, {VELA})", POINTER_FILE)
    backbone, tokenizer = _object(pointer, "backbone"), _object(pointer, "tokenizer")
    weights = backbone.get("weights")
    if not isinstance(weights, list) or not weights:
        raise not_of_the_format(POINTER_FILE, "backbone.weights, a list of files", weights)
    decision = _object(pointer, "decision_weights")
    if set(decision) != set(_DECISION_WEIGHTS[runtime]):
        raise not_of_the_format(POINTER_FILE, f"decision_weights {', '.join(_DECISION_WEIGHTS[runtime])}", sorted(decision))
    calibration = pointer.get("calibration") or {}
    files = {
        "model_config": _file(folder, pointer.get("model_config"), "model_config"),
        "backbone.config": _file(folder, backbone.get("config"), "backbone.config"),
        **{f"weights.{i}": _file(folder, name, "backbone.weights") for i, name in enumerate(weights)},
        **({"index": _file(folder, backbone["index"], "backbone.index")} if backbone.get("index") is not None else {}),
        **{f"tokenizer.{key}": _file(folder, tokenizer[key], f"tokenizer.{key}") for key in ("json", "config", "special_tokens_map") if key in tokenizer},
        **{f"decision.{key}": _file(folder, name, f"decision_weights.{key}") for key, name in decision.items()},
        **({"temperature": _file(folder, calibration["temperature_file"], "calibration.temperature_file")} if calibration.get("temperature_file") else {}),
    }
    if not files.get("tokenizer.json", "").endswith("tokenizer.json"):
        raise not_of_the_format(POINTER_FILE, "tokenizer.json, a file of that name", tokenizer.get("json"))
    config = read_json_object(folder / files["model_config"])
    _check_config(runtime, config, files["model_config"])
    return Decision1Package(
        folder, runtime, str(pointer.get("model_name") or ""), config, read_json_object(folder / files["backbone.config"]),
        tuple(files[f"weights.{i}"] for i in range(len(weights))),
        {key.removeprefix("tokenizer."): name for key, name in files.items() if key.startswith("tokenizer.")},
        {key.removeprefix("decision."): name for key, name in files.items() if key.startswith("decision.")},
        _temperatures(folder, runtime, calibration), tuple(sorted(set(files.values()))),
    )  # fmt: skip


def _object(pointer: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = pointer.get(name)
    if not isinstance(value, dict):
        raise not_of_the_format(POINTER_FILE, f"{name}, an object", value)
    return value


def _file(folder: Path, name: Any, what: str) -> str:
    if not isinstance(name, str) or not name or name.startswith("/") or "\\" in name or ".." in name.split("/"):
        raise not_of_the_format(POINTER_FILE, f"{what}, a file inside the package", name)
    if not (folder / name).is_file():
        raise PackageError(f"{folder} lacks {name}, which {POINTER_FILE} names as {what}", reason="missing_file", param=name, fix="Download the package again.")
    return name


def _check_config(runtime: str, config: Mapping[str, Any], file: str) -> None:
    if runtime == QWEN:
        if config.get("prompt_version") != _PROMPT:
            raise layout_not_published(f"prompts of version {config.get('prompt_version')!r:.80} (known: {_PROMPT})", file)
        if type(config.get("head_dim")) is not int or config["head_dim"] < 1:
            raise not_of_the_format(file, "head_dim, a positive integer", config.get("head_dim"))
        return
    if any(config.get(key) != value for key, value in _ARM.items()):
        raise layout_not_published(f"encoders of arm {config.get('arm')!r:.40} / {config.get('training_arm')!r:.40} (known: all22 / S22)", file)
    head = config.get("head")
    if not isinstance(head, dict) or type(head.get("head_layers")) is not int or type(head.get("head_heads")) is not int or head["head_heads"] < 1:
        raise not_of_the_format(file, "head with head_layers and head_heads", head)


def _temperatures(folder: Path, runtime: str, calibration: Any) -> dict[str, float]:
    """One for all types, or one for each. Encoders have none."""
    if runtime == VELA:
        if calibration:
            raise not_of_the_format(POINTER_FILE, "no calibration, since encoders are not calibrated", calibration)
        return {}
    if not isinstance(calibration, dict) or (calibration.get("temperature") is None) == (calibration.get("temperature_file") is None):
        raise not_of_the_format(POINTER_FILE, "calibration with either temperature or temperature_file", calibration)
    if calibration.get("temperature") is not None:
        values: dict[str, Any] = dict.fromkeys(TYPES, calibration["temperature"])
    else:
        document = read_json_object(folder / calibration["temperature_file"])
        per_type = document.get("temperatures")
        values = per_type if isinstance(per_type, dict) and set(per_type) == set(TYPES) else dict.fromkeys(TYPES, document.get("temperature"))
    if not all(type(value) in (int, float) and isfinite(value) and value > 0 for value in values.values()):
        raise not_of_the_format(POINTER_FILE, "positive calibration temperatures", values)
    return {kind: float(value) for kind, value in values.items()}


def verify_package(package: Package, digests: Mapping[str, str]) -> Verified:
    """Raises PackageError (`hash_mismatch`, `manifest_invalid`). MANIFEST.json is optional, and need not list every file."""
    found = read_package(package)
    if MANIFEST in digests:
        read_file_list(found.folder, MANIFEST, "files")[0].check(digests, complete=False)
    return Verified(digest_of_digests({name: digests[name] for name in found.model_files}), digests.get(MANIFEST, ""))
