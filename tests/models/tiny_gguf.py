"""Tiny models as GGUF files, written with the gguf package the way llama.cpp's converter does."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch

from tests.models.tiny_models import SIZES, TinyModel

ARCHITECTURES = {
    "llama": "llama", "smollm": "llama", "qwen2": "qwen2", "qwen3": "qwen3", "gemma3": "gemma3", "gemma2_head_scale": "gemma2",
    "phi3": "phi3", "qwen3_moe": "qwen3moe",
}  # fmt: skip
_TENSORS = {value: key for key, value in gguf.MODEL_ARCH_NAMES.items()}
_GEMMAS = ("gemma2", "gemma3")


def write_gguf(
    model: TinyModel, path: Path, matrices: gguf.GGMLQuantizationType = gguf.GGMLQuantizationType.F32,
    exception: Callable[[str], gguf.GGMLQuantizationType | None] = lambda name: None,
) -> None:  # fmt: skip
    """Matrices in the type that is given, or in that of the `exception` by name, the rest as F32; names from the gguf package's own map."""
    architecture = ARCHITECTURES[model.name]
    config = model.oracle.config
    head_dim = getattr(config, "head_dim", None) or SIZES["hidden_size"] // SIZES["num_attention_heads"]
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_name("tiny")
    writer.add_vocab_size(config.vocab_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_key_length(head_dim)
    writer.add_value_length(head_dim)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    if "rope_theta" in config.rope_parameters:
        writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    _SETTINGS.get(architecture, lambda writer, config: None)(writer, config)
    names = gguf.get_tensor_name_map(_TENSORS[architecture], config.num_hidden_layers)
    state = model.oracle.state_dict()
    for key, tensor in state.items():
        if key == "lm_head.weight" and config.tie_word_embeddings:
            continue
        for stem, kind, part in _split(key, tensor):
            values = _converted(architecture, stem, part, head_dim).numpy().astype(np.float32)
            name = f"{names.get_name(stem)}.{kind}"
            stored = gguf.GGMLQuantizationType.F32 if values.ndim == 1 else exception(name) or matrices
            writer.add_tensor(name, gguf.quants.quantize(values, stored), raw_dtype=stored)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _gemma2(writer: gguf.GGUFWriter, config: Any) -> None:
    writer.add_attn_logit_softcapping(config.attn_logit_softcapping)
    writer.add_final_logit_softcapping(config.final_logit_softcapping)
    writer.add_sliding_window(config.sliding_window)


def _phi3(writer: gguf.GGUFWriter, config: Any) -> None:
    rope, head_dim = config.rope_parameters, config.hidden_size // config.num_attention_heads
    original = config.original_max_position_embeddings
    writer.add_rope_dimension_count(int(head_dim * rope["partial_rotary_factor"]))
    writer.add_sliding_window(config.sliding_window or 0)  # 0 is how the converter marks Phi-4, which has none
    if "long_factor" not in rope:
        return
    writer.add_rope_scaling_orig_ctx_len(original)
    stretched = config.max_position_embeddings / original
    writer.add_rope_scaling_attn_factors(math.sqrt(1 + math.log(stretched) / math.log(original)))
    for name in ("long", "short"):
        writer.add_tensor(f"rope_factors_{name}.weight", np.array(rope[f"{name}_factor"], np.float32))


def _qwen3moe(writer: gguf.GGUFWriter, config: Any) -> None:
    writer.add_expert_count(config.num_experts)
    writer.add_expert_used_count(config.num_experts_per_tok)
    writer.add_expert_feed_forward_length(config.moe_intermediate_size)


_SETTINGS = {"gemma2": _gemma2, "phi3": _phi3, "qwen3moe": _qwen3moe}


def _split(key: str, tensor: torch.Tensor) -> list[tuple[str, str, torch.Tensor]]:
    """(name without its ending, ending, values) of what a tensor of transformers becomes."""
    if key.endswith("experts.gate_up_proj"):
        gate, up = tensor.chunk(2, 1)
        stem = key.removesuffix("gate_up_proj")
        return [(f"{stem}gate_proj", "weight", gate), (f"{stem}up_proj", "weight", up)]
    if key.endswith("experts.down_proj"):
        return [(key, "weight", tensor)]
    stem, kind = key.rsplit(".", 1)
    return [(stem, kind, tensor)]


def _converted(name: str, key: str, tensor: torch.Tensor, head_dim: int) -> torch.Tensor:
    if name in _GEMMAS and "norm" in key:
        return tensor + 1
    if name == "llama" and ("q_proj" in key or "k_proj" in key):
        return tensor.view(-1, 2, head_dim // 2, *tensor.shape[1:]).transpose(1, 2).reshape(tensor.shape)
    return tensor
