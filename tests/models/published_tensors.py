"""From what transformers 5 saves to what a published file of the model holds: older names, and tensors nobody needs any more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Tensors = dict[str, torch.Tensor]


def _tables(name: str, size: int) -> Callable[[Tensors, Any], Tensors]:
    """Rotary tables in every layer, as files of before 2024 have them. `name` with {} for the layer."""

    def add(tensors: Tensors, config: Any) -> Tensors:
        return tensors | {name.format(i): torch.ones(size) for i in range(config.num_hidden_layers)}

    return add


def _gpt2(tensors: Tensors, config: Any) -> Tensors:
    """Without the outer module, with the causal masks."""
    masks = {f"h.{i}.attn.bias": torch.ones(1, 1, 256, 256).tril() for i in range(config.n_layer)}
    return {name.removeprefix("transformer."): tensor for name, tensor in tensors.items()} | masks


def _gpt2_whole(tensors: Tensors, config: Any) -> Tensors:
    """With the outer module, both kinds of masks and a copy of the embedding as the head."""
    for i in range(config.n_layer):
        tensors[f"transformer.h.{i}.attn.bias"] = torch.ones(1, 1, 256, 256).tril()
        tensors[f"transformer.h.{i}.attn.masked_bias"] = torch.tensor(-1e4)
    return tensors | {"lm_head.weight": tensors["transformer.wte.weight"].clone()}


def _gpt_neox(tensors: Tensors, config: Any) -> Tensors:
    for i in range(config.num_hidden_layers):
        stem = f"gpt_neox.layers.{i}.attention"
        tensors[f"{stem}.bias"] = torch.ones(1, 1, 256, 256, dtype=torch.bool).tril()
        tensors[f"{stem}.masked_bias"] = torch.tensor(-1e9)
        tensors[f"{stem}.rotary_emb.inv_freq"] = torch.ones(2)
    return tensors


def _falcon(tensors: Tensors, config: Any) -> Tensors:
    return tensors | {"lm_head.weight": tensors["transformer.word_embeddings.weight"].clone()}


AS_PUBLISHED: dict[str, Callable[[Tensors, Any], Tensors]] = {
    "llama-2-7b": _tables("model.layers.{}.self_attn.rotary_emb.inv_freq", 8),
    "stablelm-3b-4e1t": _tables("model.layers.{}.self_attn.rotary_emb.inv_freq", 2),
    "gpt2": _gpt2,
    "gpt2-medium": _gpt2,
    "gpt2-xl": _gpt2,
    "distilgpt2": _gpt2_whole,
    "dialogpt": _gpt2_whole,
    "pythia-160m": _gpt_neox,
    "pythia-1.4b": _gpt_neox,
    "gpt-neox-20b": _gpt_neox,
    "falcon-7b": _falcon,
    "falcon-40b": _falcon,
    "falcon-180b": _falcon,
    "falcon-rw-1b": _falcon,
}
NAMES = {
    "mixtral-8x7b": "model.layers.1.block_sparse_moe.experts.7.w2.weight",
    "qwen3-30b-a3b": "model.layers.2.mlp.experts.15.up_proj.weight",
    "falcon-7b": "transformer.h.0.self_attention.query_key_value.weight",
    "falcon-40b": "transformer.h.0.ln_attn.bias",
    "falcon-rw-1b": "transformer.h.0.post_attention_layernorm.bias",
    "gpt2": "h.0.attn.c_attn.weight",
    "gpt-neox-20b": "gpt_neox.layers.0.attention.masked_bias",
    "phi-3-mini-4k": "model.layers.0.self_attn.qkv_proj.weight",
    "stablelm-2-12b": "model.layers.0.self_attn.k_layernorm.norms.1.weight",
}
