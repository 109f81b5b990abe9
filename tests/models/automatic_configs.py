"""A small config for every causal language model of transformers, made without knowing the model: sizes by their names."""

from __future__ import annotations

from typing import Any

import torch
import transformers
from transformers import CONFIG_MAPPING, PreTrainedConfig
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

SIZES: dict[str, Any] = {
    "vocab_size": 160, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
    **dict.fromkeys(("hidden_size", "n_embd", "d_model", "embed_dim", "emb_dim", "hidden_dim"), 64),
    **dict.fromkeys(("intermediate_size", "ffn_dim", "d_ff", "n_inner", "ffn_hidden_size", "decoder_ffn_dim", "encoder_ffn_dim", "inner_dim"), 96),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "num_heads", "decoder_attention_heads", "encoder_attention_heads"), 4),
    **dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers", "num_layers", "decoder_layers", "encoder_layers"), 4),
    **dict.fromkeys(("max_position_embeddings", "n_positions", "max_seq_len", "n_ctx"), 256),
    **dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts"), 4),
    "num_key_value_heads": 2, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "shared_expert_intermediate_size": 32,
    "n_shared_experts": 1, "first_k_dense_replace": 1, "n_group": 1, "topk_group": 1, "sliding_window": 16, "rotary_dim": 8,
    "q_lora_rank": 24, "kv_lora_rank": 16, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 16, "head_dim": 16,
    "image_size": 32, "patch_size": 16, "projection_dim": 32, "vocab_size_per_layer_input": 160, "hidden_size_per_layer_input": 16, "word_embed_proj_dim": 64,
}  # fmt: skip
_MAY_BE_NONE = ("head_dim", "num_key_value_heads", "pad_token_id", "bos_token_id", "eos_token_id", "q_lora_rank", "sliding_window", "num_experts_per_tok")
_LAYERS = 4


def causal_architectures() -> dict[str, str]:
    """Class name -> model type; of several types with one class that of the text model, else the first."""
    found: dict[str, str] = {}
    for kind, names in sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.items(), key=lambda pair: (not pair[0].endswith("_text"), pair[0])):
        for name in [names] if isinstance(names, str) else names:
            found.setdefault(name, kind)
    return found


def small_config(config_class: type[PreTrainedConfig]) -> PreTrainedConfig:
    """Raises whatever the class raises when it does not like the sizes."""
    fresh = config_class()
    known = {**vars(fresh), **(getattr(config_class, "attribute_map", None) or {})}
    sizes = {name: size for name, size in SIZES.items() if name in known and (name in _MAY_BE_NONE or getattr(fresh, name, None) is not None)}
    if "qk_nope_head_dim" in known:  # keys and values are made for every head
        sizes.pop("head_dim", None)
        sizes["num_key_value_heads"] = 4
    for name in ("layer_types", "mlp_layer_types", "layers_block_type"):
        kinds = vars(fresh).get(name)
        if isinstance(kinds, list):
            sizes[name] = (list(dict.fromkeys(kinds)) * _LAYERS)[:_LAYERS]
    parts = {name: small_config(part) for name, part in getattr(config_class, "sub_configs", {}).items() if part is not transformers.AutoConfig}
    return config_class(**sizes, **parts)


def randomize_gently(model: torch.nn.Module) -> None:
    """Matrices as large as in trained models; vectors near what they were, since some are scales that are squared."""
    generator = torch.Generator().manual_seed(11)
    for weight in model.parameters():
        noise = torch.randn(weight.shape, generator=generator)
        if weight.dim() < 2:
            weight.data.mul_(1 + 0.2 * noise).add_(0.02 * noise)
        else:
            weight.data.copy_(noise * (1.2 / weight.shape[-1] ** 0.5))


def config_of(model_type: str) -> PreTrainedConfig:
    return small_config(CONFIG_MAPPING[model_type])
