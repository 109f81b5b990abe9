"""GGUF metadata -> a configuration in Hugging Face spelling, so that nothing above knows two dialects."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from headway.artifacts.card import TensorInfo
from headway.artifacts.gguf_architectures import (
    ARCHITECTURES,
    MIXTRAL,
    RENAMED_FIELDS,
    REQUIRED_FIELDS,
    GgufArchitecture,
)
from headway.artifacts.gguf_family_fields import FAMILY_FIELDS
from headway.artifacts.gguf_rope import rope_scaling
from headway.errors import ArtifactError

MAX_LAYERS: Final = 4_096
MAX_FIELD: Final = 1 << 31
_SAMPLING: Final = {
    "temperature": "general.sampling.temp",
    "top_k": "general.sampling.top_k",
    "top_p": "general.sampling.top_p",
    "min_p": "general.sampling.min_p",
    "repetition_penalty": "general.sampling.penalty_repeat",
}
_TOKEN_IDS: Final = {"bos_token_id": "bos", "eos_token_id": "eos", "pad_token_id": "padding", "unk_token_id": "unknown"}


@dataclass(frozen=True, slots=True)
class GgufConfig:
    """`config` and `generation_config` in HF spelling; `problems` name what could not be expressed."""

    architecture: str
    model_type: str
    config: dict[str, Any]
    generation_config: dict[str, Any]
    problems: tuple[str, ...]


def gguf_config(metadata: Mapping[str, Any], tensors: Mapping[str, TensorInfo], source: str) -> GgufConfig:
    """Translate. `source` names the file in errors.

    Raises ArtifactError (`gguf_metadata`) when a field that every model needs is missing or impossible. Architectures
    that are not in the table keep their GGUF name and get a problem line instead of Hugging Face names.
    """
    name = metadata.get("general.architecture")
    if not isinstance(name, str) or not name:
        raise _bad(source, "general.architecture is missing")
    problems: list[str] = []
    known = ARCHITECTURES.get(name)
    if known is None:
        problems.append(
            f"GGUF architecture {name!r:.60} has no Hugging Face name in Headway; known: {', '.join(ARCHITECTURES)}"
        )
        known = GgufArchitecture(name, name)
    if name == "llama" and _scalar(metadata.get("llama.expert_count"), [], ""):
        known = MIXTRAL
    config: dict[str, Any] = {"architectures": [known.architecture], "model_type": known.model_type, **known.fixed}
    for field, key in RENAMED_FIELDS.items():
        value = _scalar(metadata.get(f"{name}.{key}"), problems, f"{name}.{key}")
        if value is not None:
            config[field] = value
    if name in ARCHITECTURES:
        _check_sizes(config, source)
        _derive(config, name, known, metadata, tensors)
        scaling = rope_scaling(metadata, tensors, name, config)
        if scaling is not None:
            config["rope_scaling"] = scaling
    _add_vocabulary(config, name, metadata, tensors)
    return GgufConfig(
        known.architecture, known.model_type, config, _generation_config(config, metadata), tuple(problems)
    )


def _bad(source: str, message: str) -> ArtifactError:
    return ArtifactError(
        f"{source}: {message}",
        reason="gguf_metadata",
        param=source,
        fix="The file is damaged or was made by a broken converter; download or convert it again.",
    )


def _scalar(value: Any, problems: list[str], key: str) -> Any:
    """A number as it is; a per-layer array as its one value, or None with a problem when layers differ."""
    if isinstance(value, np.ndarray):
        distinct = sorted(set(value.tolist()))
        if len(distinct) != 1:
            problems.append(f"{key} differs between layers ({distinct[:6]}), which Headway does not support")
            return None
        return distinct[0]
    if isinstance(value, float) and not math.isfinite(value):
        problems.append(f"{key} is not a finite number")
        return None
    return value if isinstance(value, int | float) else None


def _check_sizes(config: Mapping[str, Any], source: str) -> None:
    for field in (*REQUIRED_FIELDS, "num_key_value_heads", "head_dim", "max_position_embeddings"):
        value = config.get(field)
        if value is None and field not in REQUIRED_FIELDS:
            continue
        if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < MAX_FIELD:
            raise _bad(source, f"{RENAMED_FIELDS[field]} must be a positive number, found {value!r}")
    if config["num_hidden_layers"] > MAX_LAYERS:
        raise _bad(source, f"block_count claims {config['num_hidden_layers']} layers, the limit is {MAX_LAYERS}")


def _derive(
    config: dict[str, Any],
    name: str,
    known: GgufArchitecture,
    metadata: Mapping[str, Any],
    tensors: Mapping[str, TensorInfo],
) -> None:
    """Fields that GGUF leaves out because they follow from others or from which tensors there are."""
    heads = config["num_attention_heads"]
    config.setdefault("num_key_value_heads", heads)
    config.setdefault("head_dim", config["hidden_size"] // heads)
    config.setdefault("rope_theta", 10_000.0)
    config["tie_word_embeddings"] = "output.weight" not in tensors
    if known.model_type in ("llama", "mixtral", "phi3"):
        config["attention_bias"] = "blk.0.attn_q.bias" in tensors
        config["mlp_bias"] = "blk.0.ffn_gate.bias" in tensors
    if known.model_type in ("qwen2_moe", "qwen3_moe"):
        config["num_experts"] = config.pop("num_local_experts", None)
    turning = metadata.get(f"{name}.rope.dimension_count")
    if known.model_type in FAMILY_FIELDS:
        fields = FAMILY_FIELDS[known.model_type](config, tensors, turning if isinstance(turning, int) else None)
        config.update(fields)
        for field in [field for field, value in fields.items() if value is None]:
            del config[field]
    if known.model_type == "phi3" and isinstance(turning, int) and turning < config["head_dim"]:
        config["partial_rotary_factor"] = turning / config["head_dim"]
    window = config.get("sliding_window")
    if window == 0:  # Phi-4, whose files have the key, but no window
        config["sliding_window"] = None
    if window and known.window_pattern > 1:
        pattern = metadata.get(f"{name}.attention.sliding_window_pattern", known.window_pattern)
        config["layer_types"] = _layer_types(config["num_hidden_layers"], pattern, known.window_pattern)
    if known.model_type in ("gemma2", "gemma3_text"):
        config["query_pre_attn_scalar"] = _query_scale(config)


def _layer_types(layers: int, pattern: Any, default: int) -> list[str]:
    """A number n: every n-th layer is full. An array (newer files): True marks a sliding layer."""
    if isinstance(pattern, list | np.ndarray) and len(pattern) == layers:
        return ["sliding_attention" if sliding else "full_attention" for sliding in pattern]
    every = pattern if isinstance(pattern, int) and pattern > 0 else default
    return ["full_attention" if (i + 1) % every == 0 else "sliding_attention" for i in range(layers)]


def _query_scale(config: Mapping[str, Any]) -> int:
    """The largest Gemmas (27B) scale queries by hidden/heads, all others by head_dim (transformers and llama.cpp agree)."""
    largest = {"gemma2": 46, "gemma3_text": 62}[config["model_type"]]
    if config["num_hidden_layers"] == largest:
        return int(config["hidden_size"] // config["num_attention_heads"])
    return int(config["head_dim"])


def _add_vocabulary(
    config: dict[str, Any], name: str, metadata: Mapping[str, Any], tensors: Mapping[str, TensorInfo]
) -> None:
    """The embedding matrix decides the vocabulary size: padded rows exist in it and not in the token list."""
    embedding = tensors.get("token_embd.weight")
    tokens = metadata.get("tokenizer.ggml.tokens")
    declared = metadata.get(f"{name}.vocab_size")
    if embedding is not None and len(embedding.shape) == 2:
        config["vocab_size"] = embedding.shape[0]
    elif isinstance(declared, int):
        config["vocab_size"] = declared
    elif isinstance(tokens, list):
        config["vocab_size"] = len(tokens)
    for field, key in _TOKEN_IDS.items():
        value = metadata.get(f"tokenizer.ggml.{key}_token_id")
        if isinstance(value, int) and not isinstance(value, bool):
            config[field] = value


def _generation_config(config: Mapping[str, Any], metadata: Mapping[str, Any]) -> dict[str, Any]:
    generation = {field: config[field] for field in ("bos_token_id", "pad_token_id") if field in config}
    ends = [
        config.get("eos_token_id"),
        metadata.get("tokenizer.ggml.eot_token_id"),
        metadata.get("tokenizer.ggml.eom_token_id"),
    ]
    distinct = list(dict.fromkeys(end for end in ends if isinstance(end, int)))
    if distinct:
        generation["eos_token_id"] = distinct[0] if len(distinct) == 1 else distinct
    for field, key in _SAMPLING.items():
        value = metadata.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool):
            generation[field] = value
    return generation
