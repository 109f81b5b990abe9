"""Reading a Hugging Face config: fields with checks, and what all supported architectures spell alike."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from headway.errors import ArtifactError, NotBuiltError
from headway.kernels.interface import Activation

_LARGEST: Final = 1 << 31
_MOST_LAYERS: Final = 4_096
_LARGEST_HEAD: Final = 1 << 16
# Names of transformers (`ACT2FN`). Those in front of a gate, and those of a feed-forward without one.
GATES: Final[dict[str, Activation]] = {
    "silu": "silu", "swish": "silu", "gelu_pytorch_tanh": "gelu_tanh", "gelu_new": "gelu_tanh",
}  # fmt: skip
ACTIVATIONS: Final[dict[str, Activation]] = {
    **GATES, "gelu_fast": "gelu_tanh", "gelu_python_tanh": "gelu_tanh", "gelu": "gelu", "gelu_python": "gelu", "relu": "relu",
}  # fmt: skip

# Fields of DecoderConfig -> what most configs call them.
SIZE_FIELDS: Final[dict[str, str]] = {
    "vocab_size": "vocab_size",
    "hidden_size": "hidden_size",
    "intermediate_size": "intermediate_size",
    "num_layers": "num_hidden_layers",
    "num_heads": "num_attention_heads",
    "num_kv_heads": "num_key_value_heads",
    "head_dim": "head_dim",
    "max_position_embeddings": "max_position_embeddings",
    "norm_epsilon": "rms_norm_eps",
}
_FIX: Final = "Check config.json against the model's original."


def count(config: Mapping[str, Any], name: str, default: int | None = None) -> int:
    """A positive integer. Raises ArtifactError (`invalid_model_config`)."""
    value = config.get(name)
    value = default if value is None else value
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < _LARGEST:
        raise bad_field(name, f"a positive integer below {_LARGEST}", value)
    return value


def number(config: Mapping[str, Any], name: str, default: float | None = None) -> float:
    """A finite positive number. Raises ArtifactError (`invalid_model_config`)."""
    value = config.get(name)
    value = default if value is None else value
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
        raise bad_field(name, "a positive number", value)
    return float(value)


def optional_number(config: Mapping[str, Any], name: str, default: float | None = None) -> float | None:
    """A finite positive number, or None where the config says null. Raises ArtifactError (`invalid_model_config`)."""
    value = config.get(name, default)
    return None if value is None else number({name: value}, name)


def optional_count(config: Mapping[str, Any], name: str, default: int | None = None) -> int | None:
    """A positive integer, or None where the config says null. Raises ArtifactError (`invalid_model_config`)."""
    value = config.get(name, default)
    return None if value is None else count({name: value}, name)


def flag(config: Mapping[str, Any], name: str, default: bool = False) -> bool:
    """A boolean. Raises ArtifactError (`invalid_model_config`)."""
    value = config.get(name)
    value = default if value is None else value
    if not isinstance(value, bool):
        raise bad_field(name, "true or false", value)
    return value


def layer_types(config: Mapping[str, Any], default: list[str]) -> list[str]:
    """`layer_types`, one of sliding_attention and full_attention for each layer."""
    types = config.get("layer_types")
    if types is None:
        return default
    if (
        not isinstance(types, list)
        or len(types) != len(default)
        or not all(each in ("sliding_attention", "full_attention") for each in types)
    ):
        raise bad_field("layer_types", f"{len(default)} times sliding_attention or full_attention", types)
    return types


def activation(
    config: Mapping[str, Any], name: str, default: str, known: Mapping[str, Activation] = GATES
) -> Activation:
    """Raises NotBuiltError for activations that no kernel has."""
    value = config.get(name) or default
    if not isinstance(value, str) or value not in known:
        raise NotBuiltError(f"{name} is {value!r:.60}; supported: {', '.join(known)}", param=name)
    return known[value]


def sizes(
    config: Mapping[str, Any],
    *,
    names: Mapping[str, str] = SIZE_FIELDS,
    epsilon: float = 1e-6,
    defaults: Mapping[str, int | None] = MappingProxyType({}),
) -> dict[str, Any]:
    """The fields of DecoderConfig that every architecture has. `names` are SIZE_FIELDS where the config spells some otherwise.

    `epsilon` and `defaults`, by the names of DecoderConfig, are for fields that the config leaves out; `num_kv_heads`
    defaults to the number of heads and `head_dim` to hidden / heads.
    """

    def size(field: str, default: int | None = None) -> int:
        return count(config, names[field], defaults.get(field, default))

    heads, hidden = size("num_heads"), size("hidden_size")
    found = {
        "vocab_size": size("vocab_size"),
        "hidden_size": hidden,
        "intermediate_size": size("intermediate_size"),
        "num_layers": size("num_layers"),
        "num_heads": heads,
        "num_kv_heads": size("num_kv_heads", heads),
        "head_dim": size("head_dim", hidden // heads),
        "max_position_embeddings": size("max_position_embeddings"),
        "norm_epsilon": number(config, names["norm_epsilon"], epsilon),
    }
    if found["num_layers"] > _MOST_LAYERS:
        raise bad_field(names["num_layers"], f"at most {_MOST_LAYERS}", found["num_layers"])
    if found["head_dim"] > _LARGEST_HEAD:
        raise bad_field(names["head_dim"], f"at most {_LARGEST_HEAD}", found["head_dim"])
    if heads % found["num_kv_heads"]:
        raise bad_field(names["num_kv_heads"], f"a divisor of {names['num_heads']} ({heads})", found["num_kv_heads"])
    return found


def bad_field(name: str, expected: str, value: object) -> ArtifactError:
    """`invalid_model_config`."""
    return ArtifactError(
        f"config field {name} must be {expected}, found {value!r:.80}",
        reason="invalid_model_config",
        param=name,
        fix=_FIX,
    )
