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
    Gemma3TextConfig,
    LlamaConfig,
    MistralConfig,
    PreTrainedConfig,
    Qwen2Config,
    Qwen3Config,
)

SIZES = {
    "vocab_size": 160, "hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4, "num_key_value_heads": 2,
    "max_position_embeddings": 256, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
}  # fmt: skip
WINDOW = 16
ORIGINAL_CONTEXT = 32  # where rope scaling begins to matter; sequences in the tests are 100 long


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


CONFIGS: dict[str, Callable[[], PreTrainedConfig]] = {
    "llama": _llama, "smollm": _smollm, "mistral": _mistral, "qwen2": _qwen2, "qwen3": _qwen3, "gemma3": _gemma3,
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


def _randomize(model: torch.nn.Module) -> None:
    """Weights as large as in trained models, and norms and biases that are not the ones and zeros of a fresh model."""
    generator = torch.Generator().manual_seed(11)
    for name, weight in model.named_parameters():
        noise = torch.randn(weight.shape, generator=generator)
        if "norm" in name:
            weight.data.add_(noise * 0.3)
        elif name.endswith("bias"):
            weight.data.copy_(noise * 0.3)
        else:
            weight.data.copy_(noise * (1.5 / weight.shape[1] ** 0.5))


@cache
def tiny_model(name: str, root: Path) -> TinyModel:
    """Made once per test session and folder."""
    config = CONFIGS[name]()
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32, attn_implementation="eager").eval()
    _randomize(model)
    folder = root / name
    model.save_pretrained(folder)
    return TinyModel(name, folder, model)
