"""Tiny models with LayerNorm as GGUF files, laid out as llama.cpp's converters do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch

from tests.models.tiny_models import TinyModel

_ARCHITECTURES = {value: key for key, value in gguf.MODEL_ARCH_NAMES.items()}
_FEED_FORWARD = {"gpt2": lambda config: config.n_inner or 4 * config.n_embd, "falcon": lambda config: config.ffn_hidden_size}
_EPSILON = {"starcoder2": "norm_epsilon", "stablelm": "layer_norm_eps", "gptneox": "layer_norm_eps"}


def write_layer_norm_gguf(model: TinyModel, path: Path) -> None:
    """All tensors as F32; names from the gguf package's own map."""
    config = model.oracle.config
    name = config.model_type.replace("_", "")
    writer = gguf.GGUFWriter(path, name)
    writer.add_name("tiny")
    writer.add_vocab_size(config.vocab_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(_FEED_FORWARD.get(name, lambda config: config.intermediate_size)(config))
    writer.add_head_count(config.num_attention_heads)
    if name != "gpt2":
        writer.add_head_count_kv(_kv_heads(config))
    writer.add_layer_norm_eps(getattr(config, _EPSILON.get(name, "layer_norm_epsilon")))
    if name == "stablelm":
        head_dim = config.hidden_size // config.num_attention_heads
        writer.add_rope_dimension_count(int(head_dim * config.rope_parameters["partial_rotary_factor"]))
        writer.add_parallel_residual(config.use_parallel_residual)
    if name == "starcoder2":
        writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    # transformers takes the size of GPT-2's vocabulary from here.
    writer.add_token_list([f"<{i}>" for i in range(config.vocab_size)])
    names = gguf.get_tensor_name_map(_ARCHITECTURES[name], config.num_hidden_layers)
    for key, tensor in _converted(model).items():
        stem, kind = key.rsplit(".", 1)
        writer.add_tensor(f"{names.get_name(stem)}.{kind}", np.ascontiguousarray(tensor.numpy(), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _kv_heads(config: Any) -> int:
    if config.model_type == "gpt_neox":
        return int(config.num_attention_heads)
    if config.model_type != "falcon":
        return int(config.num_key_value_heads)
    return int(config.num_kv_heads) if config.new_decoder_architecture else 1


def _converted(model: TinyModel) -> dict[str, torch.Tensor]:
    config = model.oracle.config
    found: dict[str, torch.Tensor] = {}
    for key, tensor in model.oracle.state_dict().items():
        if key == "lm_head.weight" and config.tie_word_embeddings:
            continue
        if config.model_type == "gpt2" and key.endswith((".c_attn.weight", ".c_proj.weight", ".c_fc.weight")):
            found[key] = tensor.T
        elif ".query_key_value." in key:
            found[key] = _queries_keys_values(tensor, config.num_attention_heads, _kv_heads(config))
        elif "_layernorm.norms." in key:
            stem = key.split(".norms.")[0] + ".weight"
            row = tensor[None]
            found[stem] = torch.cat((found[stem], row)) if stem in found else row
        else:
            found[key] = tensor
    return found


def _queries_keys_values(tensor: torch.Tensor, heads: int, kv_heads: int) -> torch.Tensor:
    groups = tensor.view(kv_heads, heads // kv_heads + 2, -1, *tensor.shape[1:])
    parts = (groups[:, :-2], groups[:, -2], groups[:, -1])
    return torch.cat([part.reshape(-1, *tensor.shape[1:]) for part in parts])
