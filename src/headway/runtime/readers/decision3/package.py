"""What a Decision 3.0 package says of itself, before a weight is read. Format: docs/families.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any, Final

from headway.artifacts.bounded_json import read_json_object
from headway.artifacts.quantization_claim import claim_of_config
from headway.errors import ArtifactError
from headway.runtime.loading.manifests import FileList, Verified, canonical_digest, check_sizes, read_file_list
from headway.runtime.package import Package
from headway.runtime.readers.package_tensors import PackageTensors
from headway.runtime.readers.unpublished import layout_not_published, not_of_the_format
from headway.runtime.readers.weight_files import INDEX, weight_files

FORMAT: Final = "d3-code-readout-v1"
CONFIG: Final = "decision_config.json"
MANIFEST: Final = "MODEL_MANIFEST.json"
SCHEMA: Final = "d3-package-manifest/1"
READOUT: Final = "readout.safetensors"
TEMPLATE: Final = "chat_template.jinja"
CODES: Final = 255
ATTENTION: Final = ("causal", "noncausal_full_attention")
LEAST_INPUT: Final = 16
TEXT_PREFIXES: Final = ("language_model.", "model.language_model.")
VISION_PREFIXES: Final = ("visual.", "model.visual.")
IDENTITY_FILES: Final = (READOUT, "tokenizer.json", "tokenizer_config.json", TEMPLATE)
# Fields of decision_config.json that change answers; the identity covers them.
IDENTITY_FIELDS: Final = (
    "format_version", "format_id", "prompt", "base_model", "revision", "codes", "token_ids", "temperature", "attention_mode", "pooling",
    "max_length", "readout_dtype",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Decision3Package:
    """`claim` is the quantization section. `text_prefix` is that of the tensors of the text model; those of the vision tower are there but not loaded."""

    folder: Path
    manifest: Mapping[str, Any]
    listed: FileList
    decision: Mapping[str, Any]
    text_config: Mapping[str, Any]
    weights: tuple[str, ...]
    claim: Mapping[str, Any] | None
    text_prefix: str
    max_tokens: int

    @property
    def is_bidirectional(self) -> bool:
        return bool(self.decision.get("attention_mode", "causal") != "causal")


def is_decision3(package: Package) -> bool:
    """Reads decision_config.json alone."""
    try:
        return bool((package.json(CONFIG) or {}).get("format_id") == FORMAT)
    except ArtifactError:
        return False


def read_package(package: Package) -> Decision3Package:
    """Raises PackageError: `manifest_invalid`, `invalid_package`, `layout_not_published`, `hash_mismatch`, `no_weights`."""
    folder = package.path
    listed, manifest = read_file_list(folder, MANIFEST)
    if manifest.get("schema") != SCHEMA:
        raise not_of_the_format(MANIFEST, f"schema {SCHEMA!r}", manifest.get("schema"))
    decision = read_json_object(folder / CONFIG)
    _check_decision(decision)
    config = read_json_object(folder / "config.json")
    text = config.get("text_config")
    if config.get("model_type") != "qwen3_5" or not isinstance(text, dict) or text.get("model_type") != "qwen3_5_text":
        raise not_of_the_format("config.json", "a qwen3_5 model with a qwen3_5_text text_config", config.get("model_type"))
    weights, claim = weight_files(folder), claim_of_config(config)
    check_sizes(folder, listed, list(weights))
    limit = decision.get("max_length") or text.get("max_position_embeddings")
    if type(limit) is not int or limit < LEAST_INPUT:
        raise not_of_the_format(CONFIG, f"max_length, null or an integer of at least {LEAST_INPUT}", limit)
    return Decision3Package(folder, manifest, listed, decision, text, weights, claim, _text_prefix(folder, weights, claim), limit)


def _check_decision(decision: Mapping[str, Any]) -> None:
    if decision.get("format_version") != 1 or decision.get("prompt", "d3") != "d3":
        raise layout_not_published(
            f"prompts {decision.get('prompt')!r:.60} of format version {decision.get('format_version')!r:.20} (known: 'd3' of version 1)", CONFIG
        )
    wanted = {
        "attention_mode": (decision.get("attention_mode", "causal") in ATTENTION, " or ".join(ATTENTION)),
        "pooling": (decision.get("pooling", "last") == "last", "last"),
        "readout_dtype": (decision.get("readout_dtype", "float32") in ("float32", "bfloat16"), "float32 or bfloat16"),
        "temperature": (_is_positive(decision.get("temperature", 1.0)), "a positive number"),
        "codes": (_are_distinct(decision.get("codes"), str), f"{CODES} different codes"),
        "token_ids": (_are_distinct(decision.get("token_ids"), int), f"{CODES} different token ids"),
    }
    for name, (holds, expected) in wanted.items():
        if not holds:
            raise not_of_the_format(CONFIG, f"{name}: {expected}", decision.get(name))


def _is_positive(value: Any) -> bool:
    return type(value) in (int, float) and isfinite(value) and value > 0


def _are_distinct(values: Any, kind: type) -> bool:
    return isinstance(values, list) and len(values) == CODES and all(type(value) is kind for value in values) and len(set(values)) == CODES


def weight_tensors(found: Decision3Package) -> PackageTensors:
    """Headers of the checkpoint's files."""
    return PackageTensors(found.folder, found.weights, found.claim)


def _text_prefix(folder: Path, weights: tuple[str, ...], claim: Mapping[str, Any] | None) -> str:
    names = list(PackageTensors(folder, weights, claim).infos)
    used = {next((prefix for prefix in (*TEXT_PREFIXES, *VISION_PREFIXES) if name.startswith(prefix)), name) for name in names}
    text = used & set(TEXT_PREFIXES)
    if len(text) != 1 or used - {*TEXT_PREFIXES, *VISION_PREFIXES}:
        raise not_of_the_format(weights[-1], f"tensors below one of {', '.join(TEXT_PREFIXES)} and {', '.join(VISION_PREFIXES)}", sorted(used)[:3])
    return text.pop()


def loaded_files(found: Decision3Package) -> list[str]:
    """Everything that is read, relative to the package."""
    return [MANIFEST, "config.json", CONFIG, *(name for name in (*IDENTITY_FILES, INDEX) if (found.folder / name).is_file()), *found.weights]


def verify_package(package: Package, digests: Mapping[str, str]) -> Verified:
    """Raises PackageError (`hash_mismatch`, `unlisted_file`, `invalid_package`)."""
    found = read_package(package)
    found.listed.check(digests, complete=True)
    covered = [*found.weights, *(name for name in IDENTITY_FILES if name in digests)]
    fields = {key: found.decision[key] for key in IDENTITY_FIELDS if key in found.decision}
    model = canonical_digest({"files": {name: digests[name] for name in covered}, "decision": fields})
    stated = found.manifest.get("identity")
    stated = stated.get("model_sha256") if isinstance(stated, dict) else None
    if stated != model:
        raise not_of_the_format(MANIFEST, f"identity.model_sha256 {model}, that of the files and settings", stated)
    return Verified(model, digests[MANIFEST])


def check_counts(found: Decision3Package) -> dict[str, int]:
    """Numbers of the text model, the vision tower and the readout, as the manifest has them. Raises PackageError (`invalid_package`)."""
    infos = weight_tensors(found).infos
    vision = sum(info.elements for name, info in infos.items() if name.startswith(VISION_PREFIXES))
    text = sum(info.elements for name, info in infos.items() if name.startswith(TEXT_PREFIXES))
    readout = CODES * int(found.text_config["hidden_size"])
    counted = {"text": text, "vision": vision, "readout": readout, "loaded": text + vision + readout}
    stated = found.manifest.get("parameters")
    if not isinstance(stated, dict) or any(stated.get(key) != value for key, value in counted.items()):
        raise not_of_the_format(MANIFEST, f"parameters {counted}, as the weight files say", stated)
    return counted
