"""adapter_config.json of PEFT: what of it changes what an adapter computes, and what is refused."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from headway.artifacts.bounded_json import read_json_object
from headway.errors import AdapterError

CONFIG: Final = "adapter_config.json"
_MOST_BYTES: Final = 1 << 20
T = TypeVar("T")

# Settings that the tensors show as well, or that only training reads.
_READ_ELSEWHERE: Final = frozenset({
    "auto_mapping", "base_model_name_or_path", "revision", "inference_mode", "task_type", "peft_type", "peft_version", "target_modules",
    "exclude_modules", "layers_to_transform", "layers_pattern", "fan_in_fan_out", "lora_dropout", "r", "lora_alpha", "rank_pattern",
    "alpha_pattern", "use_rslora", "runtime_config", "ensure_weight_tying", "eva_config", "megatron_core", "qalora_group_size", "bias",
    "init_lora_weights",
})  # fmt: skip
_REFUSED: Final[Mapping[str, str]] = {
    "use_dora": "DoRA, which scales the columns of whole matrices",
    "lora_bias": "biases in adapters",
    "modules_to_save": "whole modules in adapters",
    "trainable_token_indices": "trained rows of the embedding",
    "target_parameters": "adapters of parameters that are no module, such as stacked experts",
    "layer_replication": "layers that are there several times",
    "use_qalora": "QALoRA",
    "alora_invocation_tokens": "activated LoRA, which begins in the middle of a prompt",
    "use_bdlora": "block-diagonal LoRA",
    "arrow_config": "Arrow, which chooses among adapters token by token",
    "loftq_config": "LoftQ, which changes the weights of the base model",
    "corda_config": "CorDA, which changes the weights of the base model",
    "lora_ga_config": "LoRA-GA, which changes the weights of the base model",
    "megatron_config": "Megatron's layers",
}
_CHANGES_BASE: Final = ("pissa", "olora", "corda", "loftq", "lora_ga")


@dataclass(frozen=True, slots=True)
class AdapterSettings:
    """`rank` and `alpha` hold for modules that no pattern names. `rooted`: scaling alpha / sqrt(rank) (rsLoRA) instead of alpha / rank."""

    rank: int
    alpha: float
    rooted: bool
    rank_pattern: Mapping[str, int]
    alpha_pattern: Mapping[str, float]
    base_model: str

    def rank_of(self, module: str) -> int:
        return _by_pattern(self.rank_pattern, module, self.rank)

    def scaling_of(self, module: str) -> float:
        rank, alpha = self.rank_of(module), _by_pattern(self.alpha_pattern, module, self.alpha)
        return alpha / math.sqrt(rank) if self.rooted else alpha / rank

    @property
    def largest_rank(self) -> int:
        return max(self.rank, *self.rank_pattern.values()) if self.rank_pattern else self.rank


def read_settings(folder: Path) -> AdapterSettings:
    """Raises AdapterError: `adapter_config`, `adapter_feature`, or what is wrong with the file."""
    path = folder / CONFIG
    if path.is_file() and path.stat().st_size > _MOST_BYTES:
        raise _bad(f"has {path.stat().st_size} bytes, at most {_MOST_BYTES} are read")
    found = read_json_object(path)
    if found.get("peft_type") != "LORA":
        raise AdapterError(
            f"{CONFIG} says peft_type {found.get('peft_type')!r:.60}; LORA is the only kind of adapter that is applied", reason="adapter_feature",
            param="peft_type",
        )  # fmt: skip
    _refuse_features(found)
    return AdapterSettings(
        _rank("r", found.get("r")), _number("lora_alpha", found.get("lora_alpha")), bool(found.get("use_rslora")),
        {key: _rank("rank_pattern", value) for key, value in _pattern(found, "rank_pattern").items()},
        {key: _number("alpha_pattern", value) for key, value in _pattern(found, "alpha_pattern").items()},
        str(found.get("base_model_name_or_path") or "")[:200],
    )  # fmt: skip


def _refuse_features(found: Mapping[str, Any]) -> None:
    for name, what in _REFUSED.items():
        if found.get(name):
            raise _refused(name, f"is there, which asks for {what}")
    if found.get("bias") not in (None, "none"):
        raise _refused("bias", f"is {found['bias']!r:.40}, which changes biases of the base model")
    begun = found.get("init_lora_weights")
    if isinstance(begun, str) and begun.lower().startswith(_CHANGES_BASE):
        raise _refused("init_lora_weights", f"is {begun!r:.40}, which changes the weights of the base model", "Convert the adapter to plain LoRA with PEFT (path_initial_model_for_weight_conversion).")
    unknown = sorted(name for name, value in found.items() if value and name not in _READ_ELSEWHERE and name not in _REFUSED)
    if unknown:
        raise _refused(unknown[0][:60], f"is set to {found[unknown[0]]!r:.60}, and what it asks for is not known here")


def _refused(name: str, why: str, fix: str = "Merge the adapter into its base model with PEFT (merge_and_unload) and serve that.") -> AdapterError:
    return AdapterError(f"{CONFIG}: {name} {why}. That is not built", reason="adapter_feature", param=name, fix=fix)


def _bad(what: str, param: str | None = None) -> AdapterError:
    return AdapterError(f"{CONFIG} {what}", reason="adapter_config", param=param)


def _rank(name: str, value: Any) -> int:
    if type(value) is not int or value < 1:
        raise _bad(f"must have a whole number above 0 as {name}, found {value!r:.60}", name)
    return value


def _number(name: str, value: Any) -> float:
    if type(value) not in (int, float) or not math.isfinite(value):
        raise _bad(f"must have a number as {name}, found {value!r:.60}", name)
    return float(value)


def _pattern(found: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = found.get(name) or {}
    if not isinstance(value, dict) or not all(_is_pattern(key) for key in value):
        raise _bad(f"must have an object of module names as {name}, found {value!r:.60}", name)
    return value


def _is_pattern(key: str) -> bool:
    """Names and ends of names; of regular expressions only what cannot take long: no repetition but `.*` and `\\d+`."""
    return re.fullmatch(r"\^?(?:[\w.\-]|\\\.|\\d\+?|\.\*)+\$?", key) is not None and key.count("*") <= 2 and len(key) <= 200


def _by_pattern(patterns: Mapping[str, T], module: str, otherwise: T) -> T:
    """As PEFT: the first pattern that the name, or the end of it behind a point, matches."""
    for key, value in patterns.items():
        if re.match(rf"(?:.*\.)?(?:{key})$", module):
            return value
    return otherwise
