"""Reading a Hugging Face config: fields with checks, and what all supported architectures spell alike."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from headway.errors import ArtifactError, NotBuiltError
from headway.layers.gated_mlp import Activation

_LARGEST: Final = 1 << 31
_MOST_LAYERS: Final = 4_096
_ACTIVATIONS: Final[dict[str, Activation]] = {
    "silu": "silu", "swish": "silu", "gelu_pytorch_tanh": "gelu_tanh", "gelu_new": "gelu_tanh",
}  # fmt: skip
_FIX: Final = "Check config.json against the model's original."


def count(config: Mapping[str, Any], name: str, default: int | None = None) -> int:
    """A positive integer. Raises ArtifactError (`invalid_model_config`)."""
    value = config.get(name)
    value = default if value is None else value
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < _LARGEST:
        raise _bad(name, "a positive integer", value)
    return value


def number(config: Mapping[str, Any], name: str, default: float | None = None) -> float:
    """A finite positive number. Raises ArtifactError (`invalid_model_config`)."""
    value = config.get(name)
    value = default if value is None else value
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
        raise _bad(name, "a positive number", value)
    return float(value)


def flag(config: Mapping[str, Any], name: str, default: bool = False) -> bool:
    """A boolean. Raises ArtifactError (`invalid_model_config`)."""
    value = config.get(name)
    value = default if value is None else value
    if not isinstance(value, bool):
        raise _bad(name, "true or false", value)
    return value


def layer_types(config: Mapping[str, Any], default: list[str]) -> list[str]:
    """`layer_types`, one of sliding_attention and full_attention for each layer."""
    types = config.get("layer_types")
    if types is None:
        return default
    if (
        not isinstance(types, list)
        or len(types) != len(default)
        or not set(types) <= {"sliding_attention", "full_attention"}
    ):
        raise _bad("layer_types", f"{len(default)} times sliding_attention or full_attention", types)
    return types


def activation(config: Mapping[str, Any], name: str, default: str) -> Activation:
    """Raises NotBuiltError for activations that no kernel has."""
    value = config.get(name) or default
    if value not in _ACTIVATIONS:
        raise NotBuiltError(f"{name} is {value!r:.60}; supported: {', '.join(_ACTIVATIONS)}", param=name)
    return _ACTIVATIONS[value]


def sizes(config: Mapping[str, Any], default_head_dim: int | None = None) -> dict[str, Any]:
    """The fields of DecoderConfig that every architecture spells alike. `head_dim` defaults to hidden / heads."""
    heads, hidden = count(config, "num_attention_heads"), count(config, "hidden_size")
    found = {
        "vocab_size": count(config, "vocab_size"),
        "hidden_size": hidden,
        "intermediate_size": count(config, "intermediate_size"),
        "num_layers": count(config, "num_hidden_layers"),
        "num_heads": heads,
        "num_kv_heads": count(config, "num_key_value_heads", heads),
        "head_dim": count(config, "head_dim", default_head_dim or hidden // heads),
        "max_position_embeddings": count(config, "max_position_embeddings"),
        "norm_epsilon": number(config, "rms_norm_eps", 1e-6),
    }
    if found["num_layers"] > _MOST_LAYERS:
        raise _bad("num_hidden_layers", f"at most {_MOST_LAYERS}", found["num_layers"])
    if heads % found["num_kv_heads"]:
        raise _bad("num_key_value_heads", f"a divisor of num_attention_heads ({heads})", found["num_kv_heads"])
    if found["head_dim"] % 2:
        raise _bad("head_dim", "an even number", found["head_dim"])
    return found


def _bad(name: str, expected: str, value: object) -> ArtifactError:
    return ArtifactError(
        f"config field {name} must be {expected}, found {value!r:.80}",
        reason="invalid_model_config",
        param=name,
        fix=_FIX,
    )
