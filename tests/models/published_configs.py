"""config.json as well-known models publish it: every switch and spelling as it is there, sizes cut down.

Sizes keep what they are to each other: heads to key heads, head_dim to hidden / heads, windows and original contexts to texts
of a hundred tokens.
"""

from __future__ import annotations

from typing import Any

Config = dict[str, Any]

_SMALL: Config = {
    "vocab_size": 160, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3, "num_attention_heads": 4,
    "bos_token_id": 1, "eos_token_id": 2, "initializer_range": 0.02, "use_cache": True, "attention_dropout": 0.0,
}  # fmt: skip


def _llama(**fields: Any) -> Config:
    return {
        **_SMALL, "architectures": ["LlamaForCausalLM"], "model_type": "llama", "attention_bias": False, "hidden_act": "silu",
        "num_key_value_heads": 2, "pretraining_tp": 1, "rms_norm_eps": 1e-5, "max_position_embeddings": 256,
        "tie_word_embeddings": False, "torch_dtype": "bfloat16", "transformers_version": "4.43.0.dev0", **fields,
    }  # fmt: skip


_LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 32, "rope_type": "llama3"}


def _qwen2(**fields: Any) -> Config:
    return {
        **_SMALL, "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_act": "silu", "max_window_layers": 2,
        "num_key_value_heads": 2, "rms_norm_eps": 1e-6, "rope_theta": 1000000.0, "sliding_window": 256, "tie_word_embeddings": False,
        "torch_dtype": "bfloat16", "use_sliding_window": False, "max_position_embeddings": 256, **fields,
    }  # fmt: skip


def _qwen3_moe(**fields: Any) -> Config:
    return {
        **_SMALL, "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "attention_bias": False, "hidden_act": "silu",
        "decoder_sparse_step": 1, "head_dim": 32, "max_window_layers": 3, "mlp_only_layers": [], "moe_intermediate_size": 24,
        "norm_topk_prob": True, "num_experts": 16, "num_experts_per_tok": 8, "num_key_value_heads": 1, "output_router_logits": False,
        "rms_norm_eps": 1e-6, "rope_scaling": None, "rope_theta": 1000000.0, "router_aux_loss_coef": 0.001, "sliding_window": None,
        "tie_word_embeddings": False, "torch_dtype": "bfloat16", "use_sliding_window": False, "max_position_embeddings": 256, **fields,
    }  # fmt: skip


def _gemma2(**fields: Any) -> Config:
    return {
        **_SMALL, "architectures": ["Gemma2ForCausalLM"], "model_type": "gemma2", "attention_bias": False,
        "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0, "cache_implementation": "hybrid", "head_dim": 32,
        "hidden_act": "gelu_pytorch_tanh", "hidden_activation": "gelu_pytorch_tanh", "num_key_value_heads": 2, "pad_token_id": 0,
        "query_pre_attn_scalar": 32, "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "sliding_window": 16, "torch_dtype": "float32",
        "max_position_embeddings": 256, "num_hidden_layers": 4, **fields,
    }  # fmt: skip


def _gemma3(**fields: Any) -> Config:
    return {
        **_SMALL, "architectures": ["Gemma3ForCausalLM"], "model_type": "gemma3_text", "attention_bias": False,
        "attn_logit_softcapping": None, "final_logit_softcapping": None, "cache_implementation": "hybrid", "head_dim": 32,
        "hidden_activation": "gelu_pytorch_tanh", "num_key_value_heads": 1, "pad_token_id": 0, "query_pre_attn_scalar": 32,
        "rms_norm_eps": 1e-6, "rope_local_base_freq": 10000, "rope_scaling": None, "rope_theta": 1000000, "sliding_window": 16,
        "torch_dtype": "bfloat16", "max_position_embeddings": 256, "num_hidden_layers": 7, **fields,
    }  # fmt: skip


def _phi3(**fields: Any) -> Config:
    return {
        **_SMALL, "architectures": ["Phi3ForCausalLM"], "model_type": "phi3", "attention_bias": False, "embd_pdrop": 0.0,
        "auto_map": {"AutoConfig": "configuration_phi3.Phi3Config", "AutoModelForCausalLM": "modeling_phi3.Phi3ForCausalLM"},
        "hidden_act": "silu", "num_key_value_heads": 4, "original_max_position_embeddings": 256, "resid_pdrop": 0.0, "pad_token_id": 0,
        "rms_norm_eps": 1e-5, "rope_scaling": None, "rope_theta": 10000.0, "sliding_window": 23, "tie_word_embeddings": False,
        "torch_dtype": "bfloat16", "max_position_embeddings": 256, **fields,
    }  # fmt: skip


def _long(pairs: int) -> Config:
    short, long = [1.0 + i / 8 for i in range(pairs)], [1.08 + i for i in range(pairs)]
    return {"rope_scaling": {"long_factor": long, "short_factor": short, "type": "longrope"}, "max_position_embeddings": 1024}


def _granite(**fields: Any) -> Config:
    return {
        **_SMALL, "architectures": ["GraniteForCausalLM"], "model_type": "granite", "attention_bias": False, "attention_dropout": 0.1,
        "attention_multiplier": 0.0625, "embedding_multiplier": 12.0, "hidden_act": "silu", "logits_scaling": 8.0, "mlp_bias": False,
        "num_key_value_heads": 2, "pad_token_id": 0, "residual_multiplier": 0.22, "rms_norm_eps": 1e-5, "rope_scaling": None,
        "rope_theta": 10000.0, "tie_word_embeddings": True, "torch_dtype": "bfloat16", "max_position_embeddings": 256, **fields,
    }  # fmt: skip


def _olmo2(**fields: Any) -> Config:
    return {
        **_SMALL, "architectures": ["Olmo2ForCausalLM"], "model_type": "olmo2", "attention_bias": False, "hidden_act": "silu",
        "num_key_value_heads": 4, "pad_token_id": 0, "rms_norm_eps": 1e-6, "rope_scaling": None, "rope_theta": 500000,
        "tie_word_embeddings": False, "torch_dtype": "float32", "max_position_embeddings": 256, **fields,
    }  # fmt: skip


def _starcoder2(**fields: Any) -> Config:
    return {
        **_SMALL, "architectures": ["Starcoder2ForCausalLM"], "model_type": "starcoder2", "activation_function": "gelu",
        "attention_softmax_in_fp32": True, "embedding_dropout": 0.1, "hidden_act": "gelu_pytorch_tanh", "layer_norm_epsilon": 1e-5,
        "mlp_type": "default", "norm_epsilon": 1e-5, "norm_type": "layer_norm", "num_key_value_heads": 2, "residual_dropout": 0.1,
        "rope_theta": 999999.4420358813, "scale_attention_softmax_in_fp32": True, "scale_attn_weights": True, "sliding_window": 16,
        "torch_dtype": "float32", "use_bias": True, "max_position_embeddings": 256, **fields,
    }  # fmt: skip


def _falcon(**fields: Any) -> Config:
    return {
        "vocab_size": 160, "hidden_size": 96, "num_hidden_layers": 3, "num_attention_heads": 6, "bos_token_id": 1, "eos_token_id": 2,
        "initializer_range": 0.02, "use_cache": True, "architectures": ["FalconForCausalLM"], "model_type": "falcon", "alibi": False,
        "apply_residual_connection_post_layernorm": False, "attention_dropout": 0.0, "bias": False, "hidden_dropout": 0.0,
        "auto_map": {"AutoConfig": "configuration_falcon.FalconConfig", "AutoModelForCausalLM": "modeling_falcon.FalconForCausalLM"},
        "layer_norm_epsilon": 1e-5, "multi_query": True, "new_decoder_architecture": False, "parallel_attn": True,
        "torch_dtype": "bfloat16", **fields,
    }  # fmt: skip


def _gpt2(**fields: Any) -> Config:
    return {
        "activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.1, "bos_token_id": 1,
        "embd_pdrop": 0.1, "eos_token_id": 2, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05, "model_type": "gpt2", "n_ctx": 256,
        "n_embd": 60, "n_head": 5, "n_layer": 3, "n_positions": 256, "resid_pdrop": 0.1, "summary_activation": None,
        "summary_first_dropout": 0.1, "summary_proj_to_labels": True, "summary_type": "cls_index", "summary_use_proj": True,
        "task_specific_params": {"text-generation": {"do_sample": True, "max_length": 50}}, "vocab_size": 157, **fields,
    }  # fmt: skip


def _gpt_neox(**fields: Any) -> Config:
    return {
        **_SMALL, "architectures": ["GPTNeoXForCausalLM"], "model_type": "gpt_neox", "hidden_act": "gelu", "layer_norm_eps": 1e-5,
        "rotary_emb_base": 10000, "rotary_pct": 0.25, "tie_word_embeddings": False, "torch_dtype": "float16",
        "use_parallel_residual": True, "max_position_embeddings": 256, **fields,
    }  # fmt: skip


def _stablelm(**fields: Any) -> Config:
    return {
        **_SMALL, "architectures": ["StableLmForCausalLM"], "model_type": "stablelm", "hidden_act": "silu", "layer_norm_eps": 1e-5,
        "num_key_value_heads": 4, "partial_rotary_factor": 0.25, "rope_theta": 10000, "tie_word_embeddings": False,
        "torch_dtype": "bfloat16", "use_qkv_bias": False, "max_position_embeddings": 256, **fields,
    }  # fmt: skip


def _mixtral(**fields: Any) -> Config:
    return {
        **_SMALL, "architectures": ["MixtralForCausalLM"], "model_type": "mixtral", "hidden_act": "silu", "num_experts_per_tok": 2,
        "num_key_value_heads": 1, "num_local_experts": 8, "output_router_logits": False, "rms_norm_eps": 1e-5, "rope_theta": 1000000.0,
        "router_aux_loss_coef": 0.02, "sliding_window": None, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
        "max_position_embeddings": 256, **fields,
    }  # fmt: skip


def _mistral(**fields: Any) -> Config:
    return {
        **_SMALL, "architectures": ["MistralForCausalLM"], "model_type": "mistral", "hidden_act": "silu", "num_key_value_heads": 1,
        "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "sliding_window": 16, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
        "max_position_embeddings": 256, **fields,
    }  # fmt: skip


_NEW_FALCON: Config = {"new_decoder_architecture": True, "num_kv_heads": 2, "num_attention_heads": 6}

PUBLISHED: dict[str, Config] = {
    "llama-2-7b": _llama(num_key_value_heads=4, rope_scaling=None, torch_dtype="float16"),
    "llama-3-8b": _llama(rope_scaling=None, rope_theta=500000.0),
    "llama-3.1-8b": _llama(mlp_bias=False, rope_scaling=_LLAMA3, rope_theta=500000.0, eos_token_id=[2, 3]),
    "llama-3.2-1b": _llama(mlp_bias=False, head_dim=16, rope_scaling={**_LLAMA3, "factor": 32.0}, rope_theta=500000.0, tie_word_embeddings=True),
    "mistral-7b-v0.1": _mistral(),
    "mistral-7b-v0.3": _mistral(sliding_window=None, rope_theta=1000000.0),
    "mistral-nemo": _mistral(sliding_window=None, head_dim=32, rope_theta=1000000.0),
    "ministral-8b": _mistral(
        head_dim=32, num_hidden_layers=5, layer_types=["full_attention", *["sliding_attention"] * 3, "full_attention"], rope_theta=100000000.0
    ),
    "qwen2.5-7b": _qwen2(),
    "qwen2.5-7b-yarn": _qwen2(
        max_position_embeddings=64, rope_scaling={"factor": 4.0, "original_max_position_embeddings": 64, "type": "yarn"}
    ),
    "qwen2.5-0.5b": _qwen2(tie_word_embeddings=True, max_window_layers=3),
    "qwen3-30b-a3b": _qwen3_moe(),
    "qwen3-235b-a22b": _qwen3_moe(num_attention_heads=8, num_key_value_heads=2),
    "gemma-2-2b": _gemma2(),
    "gemma-2-9b": _gemma2(hidden_size=96, num_attention_heads=4, sliding_window_size=16),
    "gemma-2-27b": _gemma2(query_pre_attn_scalar=16, hidden_size=72, num_attention_heads=4),
    "gemma-3-1b": _gemma3(sliding_window_pattern=6),
    "gemma-3-270m": _gemma3(
        _sliding_window_pattern=6, layer_types=["sliding_attention"] * 5 + ["full_attention", "sliding_attention"],
        use_bidirectional_attention=False, rope_theta=1000000.0, rope_local_base_freq=10000.0,
    ),
    "gemma-3-4b-text": _gemma3(rope_scaling={"factor": 8.0, "rope_type": "linear"}, sliding_window_pattern=6, num_key_value_heads=2),
    "phi-3-mini-4k": _phi3(),
    "phi-3-mini-128k": _phi3(**_long(8), sliding_window=2048),
    "phi-3-medium-4k": _phi3(num_key_value_heads=1),
    "phi-3.5-mini": _phi3(**_long(8), sliding_window=2048, attention_bias=False),
    "phi-4": _phi3(num_key_value_heads=2, sliding_window=None, rope_theta=250000),
    "phi-4-mini": _phi3(
        **_long(6), num_key_value_heads=2, partial_rotary_factor=0.75, sliding_window=2048, tie_word_embeddings=True,
        full_attn_mod=1, interpolate_factor=1, lm_head_bias=False, mlp_bias=False,
    ),
    "granite-3.0-2b": _granite(),
    "granite-3.1-8b": _granite(attention_dropout=0.0, logits_scaling=16.0, rope_theta=10000000.0),
    "granite-3.3-2b": _granite(rope_theta=10000000.0, tie_word_embeddings=True),
    "olmo-2-7b": _olmo2(),
    "olmo-2-32b": _olmo2(num_key_value_heads=2, num_attention_heads=4),
    "starcoder2-3b": _starcoder2(),
    "starcoder2-7b": _starcoder2(rope_theta=1000000, torch_dtype="bfloat16"),
    "starcoder2-15b": _starcoder2(rope_theta=100000, tie_word_embeddings=False, use_bias=True),
    "falcon-7b": _falcon(num_kv_heads=6),
    "falcon-40b": _falcon(**_NEW_FALCON),
    "falcon-180b": _falcon(**_NEW_FALCON),
    "falcon-11b": _falcon(
        **_NEW_FALCON, activation="gelu", ff_factor=4, ffn_hidden_size=384, num_ln_in_parallel_attn=1, rope_scaling=None,
        rope_theta=500042.0, tie_word_embeddings=False, max_position_embeddings=256,
    ),
    "falcon-rw-1b": _falcon(alibi=True, bias=True, multi_query=False, parallel_attn=False),
    "gpt2": _gpt2(),
    "gpt2-medium": _gpt2(n_special=0, predict_special_tokens=True),
    "gpt2-xl": _gpt2(output_past=True, n_head=5),
    "distilgpt2": _gpt2(_num_labels=1, id2label={"0": "LABEL_0"}, label2id={"LABEL_0": 0}),
    "dialogpt": _gpt2(n_inner=None, reorder_and_upcast_attn=False, scale_attn_by_inverse_layer_idx=False, scale_attn_weights=True),
    "pythia-160m": _gpt_neox(),
    "pythia-1.4b": _gpt_neox(classifier_dropout=0.1, hidden_dropout=0.0, rope_scaling=None),
    "gpt-neox-20b": _gpt_neox(hidden_act="gelu_fast", attention_probs_dropout_prob=0, hidden_dropout_prob=0),
    "stablelm-3b-4e1t": _stablelm(),
    "stablelm-2-1.6b": _stablelm(use_qkv_bias=True, qk_layernorm=False, use_parallel_residual=False, rope_scaling=None),
    "stablelm-2-12b": _stablelm(num_key_value_heads=2, qk_layernorm=True, use_parallel_residual=True, hidden_dropout=0.0),
    "stable-code-3b": _stablelm(rope_theta=1000000),
    "mixtral-8x7b": _mixtral(),
    "mixtral-8x22b": _mixtral(rms_norm_eps=1e-5, num_attention_heads=4, num_key_value_heads=1, router_jitter_noise=0.0),
}  # fmt: skip
