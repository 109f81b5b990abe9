"""GGUF architecture names and what Hugging Face calls them, as one table.

Sources: llama.cpp `gguf-py/gguf/constants.py` and `convert_hf_to_gguf.py`; defaults are those of the transformers
configuration classes for fields that GGUF does not carry.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class GgufArchitecture:
    """`fixed` are config fields that the architecture implies. `window_pattern` n: every n-th layer attends fully, the
    others over the sliding window; 1 means no layer of a model with a window attends fully."""

    architecture: str
    model_type: str
    fixed: Mapping[str, Any] = field(default_factory=dict)
    window_pattern: int = 1


ARCHITECTURES: Final[dict[str, GgufArchitecture]] = {
    "llama": GgufArchitecture("LlamaForCausalLM", "llama", {"hidden_act": "silu"}),  # Mistral is stored as llama, too
    "qwen2": GgufArchitecture("Qwen2ForCausalLM", "qwen2", {"hidden_act": "silu"}),
    "qwen2moe": GgufArchitecture("Qwen2MoeForCausalLM", "qwen2_moe", {"hidden_act": "silu"}),
    "qwen3": GgufArchitecture("Qwen3ForCausalLM", "qwen3", {"hidden_act": "silu"}),
    "qwen3moe": GgufArchitecture("Qwen3MoeForCausalLM", "qwen3_moe", {"hidden_act": "silu", "norm_topk_prob": True}),
    "phi3": GgufArchitecture("Phi3ForCausalLM", "phi3", {"hidden_act": "silu"}),
    "gemma": GgufArchitecture("GemmaForCausalLM", "gemma", {"hidden_activation": "gelu_pytorch_tanh"}),
    "gemma2": GgufArchitecture(
        "Gemma2ForCausalLM", "gemma2", {"hidden_activation": "gelu_pytorch_tanh"}, window_pattern=2
    ),
    "gemma3": GgufArchitecture(
        "Gemma3ForCausalLM",
        "gemma3_text",
        {"hidden_activation": "gelu_pytorch_tanh", "rope_local_base_freq": 10_000.0},
        window_pattern=6,
    ),
    "starcoder2": GgufArchitecture("Starcoder2ForCausalLM", "starcoder2", {"hidden_act": "gelu_pytorch_tanh"}),
    "stablelm": GgufArchitecture("StableLmForCausalLM", "stablelm", {"hidden_act": "silu"}),
    "gpt2": GgufArchitecture("GPT2LMHeadModel", "gpt2", {"activation_function": "gelu_new"}),
    "falcon": GgufArchitecture("FalconForCausalLM", "falcon", {"activation": "gelu"}),
}

# A llama file with experts is Mixtral.
MIXTRAL: Final = GgufArchitecture("MixtralForCausalLM", "mixtral", {"hidden_act": "silu"})

# config field -> metadata key after "<architecture>."; copied when present
RENAMED_FIELDS: Final[dict[str, str]] = {
    "hidden_size": "embedding_length",
    "intermediate_size": "feed_forward_length",
    "num_hidden_layers": "block_count",
    "num_attention_heads": "attention.head_count",
    "num_key_value_heads": "attention.head_count_kv",
    "head_dim": "attention.key_length",
    "rms_norm_eps": "attention.layer_norm_rms_epsilon",
    "layer_norm_eps": "attention.layer_norm_epsilon",
    "max_position_embeddings": "context_length",
    "sliding_window": "attention.sliding_window",
    "num_local_experts": "expert_count",
    "num_experts_per_tok": "expert_used_count",
    "moe_intermediate_size": "expert_feed_forward_length",
    "attn_logit_softcapping": "attn_logit_softcapping",
    "final_logit_softcapping": "final_logit_softcapping",
    "rope_theta": "rope.freq_base",
    "rope_local_base_freq": "rope.freq_base_swa",
}

REQUIRED_FIELDS: Final = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")
