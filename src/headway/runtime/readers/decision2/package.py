"""What a Decision 2.0 package says of itself, before a weight is read. Format: docs/families.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any, Final

from headway.artifacts.bounded_json import read_json_object
from headway.artifacts.quantization_claim import claim_of_config
from headway.errors import ArtifactError, PackageError
from headway.runtime.loading.manifests import (
    FileList,
    Verified,
    canonical_digest,
    check_inventory,
    check_sizes,
    read_file_list,
)
from headway.runtime.package import Package
from headway.runtime.readers.package_tensors import PackageTensors
from headway.runtime.readers.transformers_backbone import backbone_type
from headway.runtime.readers.unpublished import layout_not_published, not_of_the_format

POINTER: Final = {"decision_format": "vllm-sr-decision", "format_version": 2, "package_schema": "dev2-package/1"}
MANIFEST: Final = "MODEL_MANIFEST.json"
SCHEMA: Final = "dev2-package-manifest/1"
CONFIG: Final = "decision_config.json"
HEAD: Final = "decision_head.safetensors"
PROMPT: Final = "decision2-segmented-options-global-query-v1"
LORA: Final = "peft-lora/1"
PROFILES: Final = ("qwen-full", "qwen-adapter")
UNPUBLISHED_PROFILES: Final = ("kai-native", "encoder-marker")
ARCHITECTURES: Final = {
    "qwen3-text-endpoints-global-query-shared-bilinear-mlp": "qwen3",
    "qwen3.5-text-endpoints-global-query-shared-bilinear-mlp": "qwen3_5_text",
}
TYPES: Final = ("choice", "noul", "score")
LEAST_INPUT: Final = 16
_TEMPERATURES: Final = (0.05, 20.0)
# The files that the model's identity covers.
_ROOT_FILES: Final = (
    CONFIG, HEAD, "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.json", "merges.txt",
    "tokenizer.model", "chat_template.jinja",
)  # fmt: skip
_SUFFIXES: Final = frozenset({".json", ".safetensors", ".bin", ".model", ".txt"})


@dataclass(frozen=True, slots=True)
class Decision2Package:
    """`backbone_kind` is the model_type of the backbone. `adapter`: the weights are a low-rank addition to a base model."""

    folder: Path
    manifest: Mapping[str, Any]
    listed: FileList
    config: Mapping[str, Any]
    backbone_kind: str
    adapter: bool

    @property
    def max_tokens(self) -> int:
        return int(self.manifest["max_input_tokens"])


def is_decision2(package: Package) -> bool:
    """Reads config.json alone."""
    try:
        return all(package.config.get(key) == value for key, value in POINTER.items())
    except ArtifactError:
        return False


def read_package(package: Package) -> Decision2Package:
    """Raises PackageError: `manifest_invalid`, `invalid_package`, `layout_not_published`, `inventory_differs`, `hash_mismatch`."""
    listed, manifest = read_file_list(package.path, MANIFEST)
    if manifest.get("schema") != SCHEMA:
        raise not_of_the_format(MANIFEST, f"schema {SCHEMA!r}", manifest.get("schema"))
    profile = manifest.get("profile")
    if profile in UNPUBLISHED_PROFILES:
        raise layout_not_published(f"Decision 2.0 packages of profile {profile!r}", MANIFEST)
    if profile not in PROFILES:
        raise not_of_the_format(MANIFEST, f"a profile of {', '.join(PROFILES)}", profile)
    limit = manifest.get("max_input_tokens")
    if type(limit) is not int or limit < LEAST_INPUT:
        raise not_of_the_format(MANIFEST, f"max_input_tokens, an integer of at least {LEAST_INPUT}", limit)
    check_inventory(package.path, listed)
    check_sizes(package.path, listed, list(listed.digests))
    config = read_json_object(package.path / CONFIG)
    kind = _check_config(config)
    adapter = config.get("checkpoint_format") == LORA
    if adapter != (profile == "qwen-adapter"):
        raise not_of_the_format(CONFIG, f"the checkpoint_format of a {profile} package", config.get("checkpoint_format"))
    return Decision2Package(package.path, manifest, listed, config, kind, adapter)


def _check_config(config: Mapping[str, Any]) -> str:
    if config.get("prompt_version") != PROMPT:
        raise layout_not_published(f"prompts of version {config.get('prompt_version')!r:.80} (known: {PROMPT})", CONFIG)
    architecture = config.get("architecture")
    if architecture not in ARCHITECTURES:
        raise layout_not_published(f"heads and prompts of architecture {architecture!r:.100}", CONFIG)
    if config.get("head_variant", "shared") != "shared":
        raise layout_not_published(f"candidate heads of variant {config['head_variant']!r:.60} (known: shared)", CONFIG)
    if config.get("dec_residual") is not None or config.get("readout") == "label_token":
        raise layout_not_published("residual and label-token readouts of Decision 2.0", CONFIG)
    if config.get("checkpoint_format") not in (None, "full", LORA):
        raise not_of_the_format(CONFIG, f"checkpoint_format full or {LORA}", config.get("checkpoint_format"))
    if type(config.get("head_dim")) is not int or config["head_dim"] < 1:
        raise not_of_the_format(CONFIG, "head_dim, a positive integer", config.get("head_dim"))
    return ARCHITECTURES[architecture]


def backbone_files(found: Decision2Package) -> list[str]:
    """Weight files of the backbone or of the adapter, relative to the package."""
    folder = "adapter" if found.adapter else "backbone"
    names = sorted(f"{folder}/{path.name}" for path in (found.folder / folder).glob("*.safetensors"))
    if not names:
        raise PackageError(f"{found.folder / folder} has no .safetensors file", reason="no_weights", param=folder, fix="Download the package again.")
    return names


def stored_tensors(found: Decision2Package) -> PackageTensors:
    """Of the backbone or of the adapter, and of the head; headers only."""
    claim = None if found.adapter else claim_of_config(backbone_config(found), "backbone/config.json")
    return PackageTensors(found.folder, [*backbone_files(found), HEAD], claim)


def backbone_config(found: Decision2Package) -> dict[str, Any]:
    """config.json of the backbone inside of a full package; its model_type agrees with the package."""
    return check_backbone(read_json_object(found.folder / "backbone" / "config.json"), found.backbone_kind, "backbone/config.json")


def check_backbone(config: dict[str, Any], kind: str, source: str) -> dict[str, Any]:
    """The text part of a configuration. Raises PackageError (`invalid_package`, `unsupported_architecture`)."""
    text = config.get("text_config") or config
    text = {**text, "model_type": "qwen3_5_text"} if text.get("model_type") == "qwen3_5" else text
    if backbone_type(text, source) != kind:
        raise not_of_the_format(source, f"model_type {kind!r} as {CONFIG} says", text.get("model_type"))
    return text


def identity_files(folder: Path) -> list[str]:
    """The files that decide answers: known names at the root, and models and texts below backbone/ and adapter/."""
    names = [name for name in _ROOT_FILES if (folder / name).is_file()]
    for part in ("backbone", "adapter"):
        names += [path.relative_to(folder).as_posix() for path in (folder / part).rglob("*") if path.is_file() and path.suffix in _SUFFIXES]
    return sorted(names)


def model_identity(found: Decision2Package, digests: Mapping[str, str]) -> str:
    """For adapters with the digests that the base must have; loading compares them with the base that is there."""
    own = {name: digests[name] for name in identity_files(found.folder)}
    if not found.adapter:
        return canonical_digest(own)
    base = base_fingerprint(found)
    return canonical_digest({**{f"checkpoint/{name}": value for name, value in own.items()}, **{f"source/{name}": value for name, value in base.items()}})


def base_fingerprint(found: Decision2Package) -> Mapping[str, str]:
    """Files of the base model and their digests, as the adapter was trained on them."""
    contract = found.config.get("lora")
    source = contract.get("source_fingerprint") if isinstance(contract, dict) else None
    files = source.get("files_sha256") if isinstance(source, dict) else None
    if not isinstance(files, dict) or not files or not all(isinstance(value, str) for value in files.values()):
        raise not_of_the_format(CONFIG, "lora.source_fingerprint.files_sha256, the digests of the base model", files)
    return files


def verify_package(package: Package, digests: Mapping[str, str]) -> Verified:
    """Raises PackageError (`hash_mismatch`, `unlisted_file`, `invalid_package`)."""
    found = read_package(package)
    found.listed.check(digests, complete=True)
    model = model_identity(found, digests)
    stated = found.manifest.get("identity")
    stated = stated.get("model_sha256") if isinstance(stated, dict) else None
    if stated != model:
        raise not_of_the_format(MANIFEST, f"identity.model_sha256 {model}, that of the files", stated)
    for what, report in (("calibration", calibration_report(found)), ("score_bias", bias_report(found))):
        if report is not None and report.get("model_sha256") != model:
            raise not_of_the_format(str(found.manifest[what]["file"]), f"model_sha256 {model}, the model it was fitted on", report.get("model_sha256"))
    return Verified(model, digests[MANIFEST])


def calibration_report(found: Decision2Package) -> dict[str, Any] | None:
    """The file of temperatures; None when the package has none."""
    return _report(found, "calibration", "calibration_version", "decision2-per-type-temperature/1")


def bias_report(found: Decision2Package) -> dict[str, Any] | None:
    """The file of score offsets; None when the package has none."""
    return _report(found, "score_bias", "format", "dev2-score-bias-v1")


def _report(found: Decision2Package, entry: str, version_key: str, version: str) -> dict[str, Any] | None:
    stated = found.manifest.get(entry)
    if not stated:
        return None
    if not isinstance(stated, dict) or not isinstance(stated.get("file"), str) or stated["file"] not in found.listed.digests:
        raise not_of_the_format(MANIFEST, f"{entry}.file, a file of the package", stated)
    report = read_json_object(found.folder / stated["file"])
    if report.get(version_key) != version:
        raise not_of_the_format(stated["file"], f"{version_key} {version!r}", report.get(version_key))
    return report


def temperatures(found: Decision2Package) -> dict[str, float]:
    """By question type; 1 for uncalibrated packages. Raises PackageError (`invalid_package`)."""
    report = calibration_report(found)
    if report is None:
        return dict.fromkeys(TYPES, 1.0)
    values = report.get("temperature_by_type")
    least, most = _TEMPERATURES
    if not isinstance(values, dict) or set(values) != set(TYPES) or not all(_is_number(v) and least <= v <= most for v in values.values()):
        raise not_of_the_format(found.manifest["calibration"]["file"], f"a temperature from {least} to {most} for each of {', '.join(TYPES)}", values)
    return {kind: float(value) for kind, value in values.items()}


def score_offsets(found: Decision2Package) -> dict[int, tuple[float, ...]]:
    """Number of levels -> offsets. Raises PackageError (`invalid_package`)."""
    report = bias_report(found)
    if report is None:
        return {}
    file, offsets = found.manifest["score_bias"]["file"], report.get("offsets")
    if not isinstance(offsets, dict) or not offsets:
        raise not_of_the_format(file, "offsets, an object", offsets)
    read = {}
    for key, row in offsets.items():
        if not key.isdigit() or not 2 <= int(key) <= 255 or not isinstance(row, list) or len(row) != int(key) or not all(map(_is_number, row)):
            raise not_of_the_format(file, "for each number of levels as many finite offsets", {key: row})
        read[int(key)] = tuple(float(value) for value in row)
    return read


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and isfinite(value)
