"""Config fields that single families spell in their own way, or that follow from which tensors a GGUF file has.

Sources: llama.cpp `src/models/falcon.cpp`, `stablelm.cpp`, `starcoder2.cpp`, `gpt2.cpp` and the converters beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

Fields = Mapping[str, Any]


def _starcoder2(config: Fields, tensors: Collection[str], turning: int | None) -> dict[str, Any]:
    return {"norm_epsilon": config.get("layer_norm_eps"), "use_bias": "blk.0.attn_q.bias" in tensors}


def _stablelm(config: Fields, tensors: Collection[str], turning: int | None) -> dict[str, Any]:
    return {
        "head_dim": None,
        "use_qkv_bias": "blk.0.attn_q.bias" in tensors,
        "qk_layernorm": "blk.0.attn_q_norm.weight" in tensors,
        # The metadata have a key for it, too; llama.cpp goes by the tensors.
        "use_parallel_residual": "blk.0.ffn_norm.weight" not in tensors,
        "partial_rotary_factor": None if turning is None else turning / config["head_dim"],
    }


def _gpt2(config: Fields, tensors: Collection[str], turning: int | None) -> dict[str, Any]:
    return {
        "head_dim": None,
        "rope_theta": None,
        "n_embd": config["hidden_size"],
        "n_inner": config["intermediate_size"],
        "n_layer": config["num_hidden_layers"],
        "n_head": config["num_attention_heads"],
        "n_positions": config.get("max_position_embeddings"),
        "layer_norm_epsilon": config.get("layer_norm_eps"),
    }


def _falcon(config: Fields, tensors: Collection[str], turning: int | None) -> dict[str, Any]:
    """Files hold the forms with attention and feed-forward side by side; ALiBi and biases cannot be in them."""
    two_norms = "blk.0.attn_norm_2.weight" in tensors
    kv_heads = config["num_key_value_heads"]
    new = two_norms or kv_heads > 1
    return {
        "head_dim": None,
        "ffn_hidden_size": config["intermediate_size"],
        "layer_norm_epsilon": config.get("layer_norm_eps"),
        "new_decoder_architecture": new,
        "num_ln_in_parallel_attn": 2 if two_norms else 1,
        "num_kv_heads": kv_heads,
    }


# By model type: config, names of tensors, rope.dimension_count -> more fields. None: the family has no such field, or its
# default is meant.
FAMILY_FIELDS: Final[Mapping[str, Callable[[Fields, Collection[str], int | None], dict[str, Any]]]] = {
    "starcoder2": _starcoder2,
    "stablelm": _stablelm,
    "gpt2": _gpt2,
    "falcon": _falcon,
}
