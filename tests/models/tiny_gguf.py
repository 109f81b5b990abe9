"""Tiny models as GGUF files, written with the gguf package the way llama.cpp's converter does."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import torch

from tests.models.tiny_models import SIZES, TinyModel

ARCHITECTURES = {"llama": "llama", "smollm": "llama", "qwen2": "qwen2", "qwen3": "qwen3", "gemma3": "gemma3"}
_TENSORS = {
    "qwen2": gguf.MODEL_ARCH.QWEN2,
    "qwen3": gguf.MODEL_ARCH.QWEN3,
    "llama": gguf.MODEL_ARCH.LLAMA,
    "gemma3": gguf.MODEL_ARCH.GEMMA3,
}


def write_gguf(model: TinyModel, path: Path) -> None:
    """All tensors as F32; names from the gguf package's own map."""
    name = ARCHITECTURES[model.name]
    config = model.oracle.config
    head_dim = getattr(config, "head_dim", None) or SIZES["hidden_size"] // SIZES["num_attention_heads"]
    writer = gguf.GGUFWriter(path, name)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_key_length(head_dim)
    writer.add_value_length(head_dim)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    names = gguf.get_tensor_name_map(_TENSORS[name], config.num_hidden_layers)
    state = model.oracle.state_dict()
    for key, tensor in state.items():
        if key == "lm_head.weight" and config.tie_word_embeddings:
            continue
        stem, kind = key.rsplit(".", 1)
        values = _converted(name, key, tensor, head_dim).numpy().astype(np.float32)
        writer.add_tensor(f"{names.get_name(stem)}.{kind}", values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _converted(name: str, key: str, tensor: torch.Tensor, head_dim: int) -> torch.Tensor:
    if name == "gemma3" and "norm" in key:
        return tensor + 1
    if name == "llama" and ("q_proj" in key or "k_proj" in key):
        return tensor.view(-1, 2, head_dim // 2, *tensor.shape[1:]).transpose(1, 2).reshape(tensor.shape)
    return tensor
