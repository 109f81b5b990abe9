"""Seeded random models of architectures that only transformers knows."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

from transformers import (
    Cohere2Config,
    CohereConfig,
    DeepseekV3Config,
    Ernie4_5Config,
    Gemma3Config,
    Gemma3TextConfig,
    Gemma4TextConfig,
    GemmaConfig,
    Glm4Config,
    HeliumConfig,
    NemotronConfig,
    Olmo3Config,
    OlmoConfig,
    OPTConfig,
    PhiConfig,
    PreTrainedConfig,
    Qwen2MoeConfig,
    SeedOssConfig,
    SmolLM3Config,
)

from tests.models.tiny_models import ORIGINAL_CONTEXT, SIZES, WINDOW, TinyModel, make_tiny_model

DEEP = {**SIZES, "num_hidden_layers": 4}
YARN = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 8.0, "original_max_position_embeddings": ORIGINAL_CONTEXT}


def _deepseek3() -> PreTrainedConfig:
    """Keys of 24 numbers, values of 16; mixtures of experts."""
    return DeepseekV3Config(
        **{**DEEP, "num_key_value_heads": 4}, q_lora_rank=24, kv_lora_rank=16, qk_nope_head_dim=16, qk_rope_head_dim=8, v_head_dim=16,
        moe_intermediate_size=32, n_routed_experts=4, num_experts_per_tok=2, n_group=1, topk_group=1, first_k_dense_replace=1,
    )  # fmt: skip


def _gemma4() -> PreTrainedConfig:
    """Layers with windows have four key heads of 16, the others two of 32; the last two share the keys of earlier ones."""
    return Gemma4TextConfig(
        **{**SIZES, "num_hidden_layers": 6, "head_dim": 16, "num_key_value_heads": 4}, global_head_dim=32, num_global_key_value_heads=2, attention_k_eq_v=True,
        sliding_window=WINDOW, hidden_size_per_layer_input=16, vocab_size_per_layer_input=160, num_kv_shared_layers=2,
        layer_types=["sliding_attention", "full_attention"] * 3,
    )  # fmt: skip


def _olmo3() -> PreTrainedConfig:
    """Windows on three layers of four, and a rotation that is stretched on the fourth."""
    return Olmo3Config(**DEEP, sliding_window=WINDOW, rope_parameters=YARN)


def _qwen2_moe() -> PreTrainedConfig:
    return Qwen2MoeConfig(**DEEP, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32, shared_expert_intermediate_size=48,
                          use_sliding_window=True, sliding_window=WINDOW, max_window_layers=2)  # fmt: skip


def _gemma3_vision() -> PreTrainedConfig:
    """A model that also sees: only its text part is used."""
    text = Gemma3TextConfig(**DEEP, head_dim=16, sliding_window=WINDOW)
    eyes = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "image_size": 32, "patch_size": 16}
    return Gemma3Config(text_config=text.to_dict(), vision_config=eyes, image_token_index=159, boi_token_index=158, eoi_token_index=157,
                        mm_tokens_per_image=4, architectures=["Gemma3ForConditionalGeneration"])  # fmt: skip


CONFIGS: dict[str, Callable[[], PreTrainedConfig]] = {
    "gemma": lambda: GemmaConfig(**DEEP, head_dim=32),
    "phi": lambda: PhiConfig(**DEEP, qk_layernorm=True),
    "qwen2_moe": _qwen2_moe,
    "cohere": lambda: CohereConfig(**DEEP, use_qk_norm=True, logit_scale=8.0),
    "cohere2": lambda: Cohere2Config(**DEEP, sliding_window=WINDOW, logit_scale=8.0),
    "olmo": lambda: OlmoConfig(**DEEP, clip_qkv=2.0),
    "olmo3": _olmo3,
    "nemotron": lambda: NemotronConfig(**DEEP),
    "glm4": lambda: Glm4Config(**DEEP, head_dim=16),
    "smollm3": lambda: SmolLM3Config(**DEEP),
    "ernie4_5": lambda: Ernie4_5Config(**DEEP),
    "seed_oss": lambda: SeedOssConfig(**DEEP, head_dim=16),
    "helium": lambda: HeliumConfig(**DEEP, head_dim=16),
    "opt": lambda: OPTConfig(**DEEP, ffn_dim=96, word_embed_proj_dim=32),
    "deepseek3": _deepseek3,
    "gemma3_vision": _gemma3_vision,
    "gemma4": _gemma4,
}


@cache
def fallback_model(name: str, root: Path) -> TinyModel:
    """Made once per test session and folder."""
    return make_tiny_model(f"fallback-{name}", CONFIGS[name](), root)
