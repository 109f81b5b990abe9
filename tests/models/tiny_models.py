"""Seeded random models of two to six layers, written to disk by transformers, and transformers itself as the oracle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoModelForCausalLM,
    Gemma2Config,
    Gemma3TextConfig,
    GraniteConfig,
    LlamaConfig,
    MistralConfig,
    MixtralConfig,
    Olmo2Config,
    Phi3Config,
    PreTrainedConfig,
    Qwen2Config,
    Qwen3Config,
    Qwen3MoeConfig,
)

from tests.models.tiny_layer_norm_models import FAMILIES as LAYER_NORM_FAMILIES
from tests.models.tiny_layer_norm_models import VARIANTS as LAYER_NORM_VARIANTS
from tests.models.tiny_sizes import ORIGINAL_CONTEXT, SERVED, SIZES, WINDOW


def _llama() -> PreTrainedConfig:
    rope = {"rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
            "original_max_position_embeddings": ORIGINAL_CONTEXT}  # fmt: skip
    return LlamaConfig(**SIZES, num_hidden_layers=3, rope_parameters=rope, attention_bias=True, mlp_bias=True)


def _smollm() -> PreTrainedConfig:
    return LlamaConfig(
        **SIZES,
        num_hidden_layers=3,
        rope_parameters={"rope_type": "default", "rope_theta": 1e5},
        tie_word_embeddings=True,
    )


def _mistral() -> PreTrainedConfig:
    rope = {"rope_type": "linear", "rope_theta": 1e4, "factor": 4.0}
    return MistralConfig(**SIZES, num_hidden_layers=3, head_dim=32, sliding_window=WINDOW, rope_parameters=rope)


def _qwen2() -> PreTrainedConfig:
    rope = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": ORIGINAL_CONTEXT}
    return Qwen2Config(
        **SIZES,
        num_hidden_layers=3,
        use_sliding_window=True,
        sliding_window=WINDOW,
        max_window_layers=1,
        rope_parameters=rope,
    )


def _qwen3() -> PreTrainedConfig:
    rope = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 8.0, "original_max_position_embeddings": ORIGINAL_CONTEXT}
    return Qwen3Config(**SIZES, num_hidden_layers=3, head_dim=32, use_sliding_window=True, sliding_window=WINDOW, max_window_layers=2,
                       rope_parameters=rope)  # fmt: skip


def _gemma3() -> PreTrainedConfig:
    rope = {"full_attention": {"rope_type": "linear", "rope_theta": 1e6, "factor": 4.0},
            "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}}  # fmt: skip
    return Gemma3TextConfig(**SIZES, num_hidden_layers=6, head_dim=32, sliding_window=WINDOW, rope_parameters=rope,
                            query_pre_attn_scalar=24, final_logit_softcapping=20.0)  # fmt: skip


def _gemma2() -> PreTrainedConfig:
    return Gemma2Config(**SIZES, num_hidden_layers=4, head_dim=32, sliding_window=WINDOW, query_pre_attn_scalar=24,
                        attn_logit_softcapping=2.0, final_logit_softcapping=20.0)  # fmt: skip


def _phi3() -> PreTrainedConfig:
    """Like Phi-4 mini: only part of a head turns. transformers switches to the long factors by the length of the text, we by
    the length that is served: both stay at or below SERVED here."""
    rope = {"rope_type": "longrope", "rope_theta": 1e4, "partial_rotary_factor": 0.75,
            "short_factor": [1.0 + i / 4 for i in range(6)], "long_factor": [2.0 + i for i in range(6)]}  # fmt: skip
    return Phi3Config(**SIZES, num_hidden_layers=3, original_max_position_embeddings=SERVED, rope_parameters=rope, sliding_window=WINDOW)


def _granite() -> PreTrainedConfig:
    return GraniteConfig(**SIZES, num_hidden_layers=3, embedding_multiplier=6.0, attention_multiplier=0.1, residual_multiplier=0.6,
                         logits_scaling=2.0, attention_bias=True, tie_word_embeddings=True)  # fmt: skip


def _olmo2() -> PreTrainedConfig:
    return Olmo2Config(**SIZES, num_hidden_layers=3, rope_parameters={"rope_type": "default", "rope_theta": 5e5})


def _mixtral() -> PreTrainedConfig:
    return MixtralConfig(**SIZES, num_hidden_layers=3, num_local_experts=6, num_experts_per_tok=2, sliding_window=WINDOW)


def _qwen3_moe() -> PreTrainedConfig:
    return Qwen3MoeConfig(**SIZES, num_hidden_layers=4, head_dim=32, num_experts=8, num_experts_per_tok=3, moe_intermediate_size=48,
                          norm_topk_prob=True, tie_word_embeddings=True)  # fmt: skip


def _gemma2_head_scale() -> PreTrainedConfig:
    """All but the largest Gemma 2 scale queries by the size of a head."""
    return Gemma2Config(**SIZES, num_hidden_layers=4, head_dim=32, sliding_window=WINDOW, query_pre_attn_scalar=32,
                        attn_logit_softcapping=2.0, final_logit_softcapping=20.0)  # fmt: skip


def _gemma2_untied() -> PreTrainedConfig:
    return Gemma2Config(**SIZES, num_hidden_layers=2, head_dim=32, tie_word_embeddings=False, attention_bias=True,
                        rope_parameters={"rope_type": "linear", "rope_theta": 1e4, "factor": 4.0})  # fmt: skip


def _phi3_tied() -> PreTrainedConfig:
    """Like Phi-3 mini 4k: no scaling."""
    return Phi3Config(**SIZES, num_hidden_layers=2, tie_word_embeddings=True)


def _granite_untied() -> PreTrainedConfig:
    rope = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": ORIGINAL_CONTEXT}
    return GraniteConfig(**SIZES, num_hidden_layers=2, attention_multiplier=0.25, mlp_bias=True, rope_parameters=rope)


def _olmo2_tied() -> PreTrainedConfig:
    sizes = SIZES | {"num_key_value_heads": 4}
    return Olmo2Config(**sizes, num_hidden_layers=2, tie_word_embeddings=True, attention_bias=True)


def _mixtral_tied() -> PreTrainedConfig:
    return MixtralConfig(**SIZES, num_hidden_layers=2, head_dim=32, num_local_experts=3, num_experts_per_tok=3, tie_word_embeddings=True)


def _qwen3_moe_untied() -> PreTrainedConfig:
    return Qwen3MoeConfig(**SIZES, num_hidden_layers=6, num_experts=8, num_experts_per_tok=1, moe_intermediate_size=32,
                          decoder_sparse_step=2, mlp_only_layers=[3], attention_bias=True, use_sliding_window=True, sliding_window=WINDOW)  # fmt: skip


CONFIGS: dict[str, Callable[[], PreTrainedConfig]] = {
    "llama": _llama, "smollm": _smollm, "mistral": _mistral, "qwen2": _qwen2, "qwen3": _qwen3, "gemma3": _gemma3,
    "gemma2": _gemma2, "phi3": _phi3, "granite": _granite, "olmo2": _olmo2, "mixtral": _mixtral, "qwen3_moe": _qwen3_moe,
    **LAYER_NORM_FAMILIES,
}  # fmt: skip


# More settings of the same architectures.
VARIANTS: dict[str, Callable[[], PreTrainedConfig]] = {
    "gemma2_head_scale": _gemma2_head_scale, "gemma2_untied": _gemma2_untied, "phi3_tied": _phi3_tied,
    "granite_untied": _granite_untied, "olmo2_tied": _olmo2_tied, "mixtral_tied": _mixtral_tied, "qwen3_moe_untied": _qwen3_moe_untied, **LAYER_NORM_VARIANTS,
}  # fmt: skip


@dataclass(frozen=True)
class TinyModel:
    """A model folder and its transformers twin (float32, eager attention)."""

    name: str
    folder: Path
    oracle: Any

    def logits(self, tokens: list[int]) -> torch.Tensor:
        """[T, vocabulary], all positions in one forward pass."""
        with torch.no_grad():
            return self.oracle(torch.tensor([tokens]), use_cache=False).logits[0]

    def greedy(self, tokens: list[int], count: int) -> list[int]:
        with torch.no_grad():
            out = self.oracle.generate(
                torch.tensor([tokens]), max_new_tokens=count, min_new_tokens=count, do_sample=False
            )
        return out[0, len(tokens) :].tolist()


def randomize(model: torch.nn.Module) -> None:
    """Weights as large as in trained models, and norms and biases that are not the ones and zeros of a fresh model."""
    generator = torch.Generator().manual_seed(11)
    for name, weight in model.named_parameters():
        noise = torch.randn(weight.shape, generator=generator)
        if (weight.dim() == 1 and not name.endswith("bias")) or "norm" in name:
            weight.data.add_(noise * 0.3)
        elif name.endswith("bias"):
            weight.data.copy_(noise * 0.3)
        else:
            weight.data.copy_(noise * (1.5 / weight.shape[-1] ** 0.5))


@cache
def tiny_model(name: str, root: Path) -> TinyModel:
    """Made once per test session and folder."""
    return make_tiny_model(name, (CONFIGS | VARIANTS)[name](), root)


def make_tiny_model(name: str, config: PreTrainedConfig, root: Path) -> TinyModel:
    """Written to `root / name`."""
    # Falcon's eager attention adds ALiBi twice, once with the mask (transformers 5.24); the usual one does not.
    attention = "sdpa" if getattr(config, "alibi", False) else "eager"
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32, attn_implementation=attention).eval()
    randomize(model)
    folder = root / name
    model.save_pretrained(folder)
    return TinyModel(name, folder, model)
