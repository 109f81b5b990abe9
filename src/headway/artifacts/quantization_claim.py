"""How a checkpoint says it is quantized, whether its tensors agree, and whether a flag agrees with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from headway.artifacts.bounded_json import read_json_object_if_present
from headway.artifacts.card import ModelCard, TensorInfo
from headway.errors import ArtifactError, ConfigError

# Methods that only exist at run time, on top of an unquantized checkpoint.
ONLINE_METHODS: Final = frozenset({"fp8", "int8", "int4"})

# What people write -> the format it means. Kernel names and vLLM's internal names are spellings of one format.
METHOD_NAMES: Final[dict[str, str]] = {
    "awq": "awq", "auto_awq": "awq", "awq_marlin": "awq",
    "gptq": "gptq", "auto_gptq": "gptq", "gptq_marlin": "gptq", "gptq_v2": "gptq", "marlin": "gptq",
    "fp8": "fp8", "fbgemm_fp8": "fp8",
    "int4": "int4", "int8": "int8", "int8_per_channel_weight_only": "int8",
    "compressed-tensors": "compressed-tensors", "compressed_tensors": "compressed-tensors",
    "bitsandbytes": "bitsandbytes", "gguf": "gguf", "squeezellm": "squeezellm", "mxfp4": "mxfp4",
    "modelopt": "modelopt", "modelopt_fp4": "modelopt", "modelopt_mixed": "modelopt", "quark": "quark",
}  # fmt: skip

# Formats of packed weights that `quantization` has a reader for; GGUF has its own way.
READABLE_FORMATS: Final = frozenset({"awq", "bitsandbytes", "compressed-tensors", "fp8", "gptq", "modelopt", "quark", "squeezellm"})

# format -> endings of which at least one must be among the tensor names
EVIDENCE: Final[dict[str, tuple[str, ...]]] = {
    "awq": (".qweight",),
    "gptq": (".qweight",),
    "squeezellm": (".lookup_table",),
    "compressed-tensors": (".weight_packed", ".weight_scale"),
    "fp8": (".weight_scale", ".weight_scale_inv"),
    "modelopt": (".weight_scale",),
    "quark": (".weight_scale",),
    "bitsandbytes": (".absmax", ".quant_state.bitsandbytes__nf4", ".quant_state.bitsandbytes__fp4", ".SCB"),
}

_PACKED: Final = tuple(dict.fromkeys((".qweight", ".weight_packed", *(ending for endings in EVIDENCE.values() for ending in endings))))
_FLOAT8: Final = ("F8_E4M3", "F8_E5M2")
_FLOAT8_FORMATS: Final = ("fp8", "compressed-tensors", "modelopt", "quark")

QUANTIZATION_FIELDS: Final = ("quantization_config", "compression_config")  # of config.json

# Older exports keep the claim in a file of its own: file -> the method it implies.
_SIDE_FILES: Final = (("quantize_config.json", "gptq"), ("quant_config.json", "awq"))
_MODELOPT_FILE: Final = "hf_quant_config.json"
SIDE_FILES: Final = (*(name for name, _ in _SIDE_FILES), _MODELOPT_FILE)


def claimed_quantization(folder: Path, config: Mapping[str, Any]) -> dict[str, Any] | None:
    """The claim of `config.json`, else of an older side file, with `quant_method` and `source` (a file name) filled in."""
    if (claim := claim_of_config(config)) is not None:
        return claim
    for name, method in _SIDE_FILES:
        section = read_json_object_if_present(folder / name)
        if section:
            implied = "squeezellm" if "wbits" in section else method
            return {"quant_method": implied, **section, "source": name}
    settings = (read_json_object_if_present(folder / _MODELOPT_FILE) or {}).get("quantization")
    if isinstance(settings, dict) and settings.get("quant_algo"):
        return {"quant_method": "modelopt", **settings, "source": _MODELOPT_FILE}
    return None


def claim_of_config(config: Mapping[str, Any], source: str = "config.json") -> dict[str, Any] | None:
    """The claim in a configuration whose name is `source`."""
    for key in QUANTIZATION_FIELDS:
        section = config.get(key)
        if isinstance(section, dict) and section:
            implied = "compressed-tensors" if key == "compression_config" else "unknown"
            return {"quant_method": implied, **section, "source": source}
    return None


def claim_problems(claim: Mapping[str, Any] | None, tensors: Mapping[str, TensorInfo]) -> list[str]:
    """Contradictions between the claim and the tensors, as sentences; none when they agree."""
    method = str(claim.get("quant_method")) if claim else None
    if method is None or claim is None:
        packed = next((name for name, each in tensors.items() if name.endswith(_PACKED) or each.dtype in _FLOAT8), None)
        return [f"tensor {packed} is packed, but no file says how (quantization_config is missing)"] if packed else []
    source, form = claim.get("source", "config.json"), METHOD_NAMES.get(method, method)
    wanted = EVIDENCE.get(form, ())
    in_float8 = form in _FLOAT8_FORMATS and any(each.dtype in _FLOAT8 for each in tensors.values())
    if wanted and not in_float8 and not any(name.endswith(wanted) for name in tensors):
        return [
            f"{source} says {method}, but no tensor ends in {' or '.join(wanted)}: the weights are not quantized that way"
        ]
    if form in ("gptq", "awq"):
        if not any(name.endswith(".scales") for name in tensors):
            return [f"{source} says {method}, but there are no .scales tensors"]
        packed, other = _packed_otherwise(form, tensors)
        if packed is not None:
            return [f"{source} says {method}, but {packed} is packed as {other} packs weights"]
    return []


def _packed_otherwise(form: str, tensors: Mapping[str, TensorInfo]) -> tuple[str | None, str]:
    """AWQ and GPTQ have the same names: words hold eight outputs in one and eight inputs in the other."""
    for name, words in tensors.items():
        scales = tensors.get(name.removesuffix("qweight") + "scales")
        if name.endswith(".qweight") and scales is not None and len(words.shape) == len(scales.shape) == 2:
            found = "gptq" if words.shape[1] == scales.shape[1] else "awq" if words.shape[1] * 8 == scales.shape[1] else form
            if found != form:
                return name, found
    return None, form


@dataclass(frozen=True, slots=True)
class QuantizationChoice:
    """`method` is the format to load (None = not quantized); `online` says it is made while loading; `note` for the log."""

    method: str | None
    online: bool = False
    note: str | None = None


def check_claim(card: ModelCard) -> None:
    """Refuse a checkpoint whose tensors are not what its files claim: it would be read wrongly.

    Raises ArtifactError (`quantization_mismatch`).
    """
    if card.format != "gguf":
        refuse_mismatch(card.quantization, card.tensors, str(card.path))


def refuse_mismatch(claim: Mapping[str, Any] | None, tensors: Mapping[str, TensorInfo], where: str) -> None:
    """`check_claim` of tensors that are in no card; `where` names them."""
    problems = claim_problems(claim, tensors)
    if problems:
        raise ArtifactError(
            f"{where}: {problems[0]}",
            reason="quantization_mismatch",
            param="quantization",
            fix="Use the configuration that belongs to these weights: one that says how packed tensors are packed, or without a"
            " quantization section if the weights are plain.",
        )


def choose_quantization(card: ModelCard, flag: str | None) -> QuantizationChoice:
    """Bring the flag `--quantization` and the checkpoint together. No flag: the checkpoint decides.

    Raises ConfigError `unknown_quantization` or `quantization_conflict`.
    """
    claim: Mapping[str, Any] | None = card.quantization
    if card.format == "gguf" and claim is None:  # a GGUF file of plain numbers is a GGUF file nevertheless
        claim = {"quant_method": "gguf", "source": card.path.name}
    stored_name = None if claim is None else str(claim.get("quant_method"))
    stored = None if stored_name is None else METHOD_NAMES.get(stored_name, stored_name)
    wanted = None if flag is None else METHOD_NAMES.get(flag)
    source = str(card.path) if claim is None else f"{claim.get('source', card.path.name)} of {card.path}"
    if flag is not None and wanted is None:
        raise _unknown(flag, "the flag --quantization")
    if stored_name is not None and stored_name not in METHOD_NAMES and flag is None:
        raise _unknown(stored_name, source)
    if flag is None:
        return QuantizationChoice(stored)
    if stored is None:
        if wanted not in ONLINE_METHODS:
            raise ConfigError(
                f"--quantization {flag} was given, but {card.path} is not quantized and {wanted} cannot be made while loading",
                reason="quantization_conflict",
                param="quantization",
                fix="Leave the flag out, or name a quantized checkpoint.",
            )
        return QuantizationChoice(wanted, online=True)
    if stored != wanted:
        raise ConfigError(
            f"Quantization method specified in the model config ({stored_name}, from {source}) does not match the"
            f" quantization method specified in the `quantization` argument ({flag})",
            reason="quantization_conflict",
            param="quantization",
            fix="Leave --quantization out: the checkpoint decides.",
        )
    same = flag == stored_name
    return QuantizationChoice(
        stored, note=None if same else f"--quantization {flag} read as {stored}, the format of the checkpoint"
    )


def _unknown(method: str, source: str) -> ConfigError:
    return ConfigError(
        f"Unknown quantization method: {method!r:.60} (from {source}). Known are {', '.join(sorted(METHOD_NAMES))}",
        reason="unknown_quantization",
        param="quantization",
    )
