"""Shapes of every kind for tests, small enough to reckon by hand."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from headway.capacity.config_shape import config_shape
from headway.capacity.model_shape import ModelShape

LLAMA: dict[str, Any] = {
    "model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "intermediate_size": 176, "num_attention_heads": 8,
    "num_key_value_heads": 2, "vocab_size": 1000, "max_position_embeddings": 4096, "tie_word_embeddings": False,
}  # fmt: skip
KINDS: dict[str, dict[str, Any]] = {
    "grouped": LLAMA,
    "tied": LLAMA | {"tie_word_embeddings": True},
    "windowed": LLAMA | {"model_type": "gemma2", "sliding_window": 64, "head_dim": 16},
    "latent": LLAMA
    | {
        "model_type": "deepseek_v3", "kv_lora_rank": 16, "q_lora_rank": 24, "qk_rope_head_dim": 8, "qk_nope_head_dim": 16, "v_head_dim": 16,
        "num_key_value_heads": 8, "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "first_k_dense_replace": 1,
    },
    "hybrid": LLAMA | {"model_type": "jamba", "attn_layer_period": 2, "attn_layer_offset": 1, "mamba_d_state": 16},
    "experts": LLAMA | {"model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2},
}  # fmt: skip


def shape(kind: str, **fields: Any) -> ModelShape:
    return config_shape(KINDS[kind] | fields, kind)


def any_shape() -> st.SearchStrategy[ModelShape]:
    return st.builds(
        lambda kind, layers, heads, context: shape(kind, num_hidden_layers=layers, num_attention_heads=heads, hidden_size=16 * heads, max_position_embeddings=context),
        st.sampled_from(sorted(KINDS)), st.integers(2, 40), st.sampled_from([4, 6, 8, 10, 28]), st.sampled_from([100, 2048, 32768]),
    )  # fmt: skip
