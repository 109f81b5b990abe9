"""GPT2LMHeadModel: GPT-2 and its kin. Learned positions instead of rotation; linear layers stored [in, out]."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headway.errors import ConfigError, NotBuiltError
from headway.models import gguf_weights
from headway.models.architecture import Architecture
from headway.models.decoder_config import DecoderConfig
from headway.models.hf_fields import ACTIVATIONS, SIZE_FIELDS, activation, count, flag, sizes
from headway.models.module_paths import ATTENTION_NORM, ATTENTION_OUTPUT, MLP_DOWN, MLP_NORM, MLP_UP, QKV
from headway.models.weight_rules import OneOf, Shard, WeightRule, with_bias

_FIELDS: Final = {
    **SIZE_FIELDS,
    "hidden_size": "n_embd",
    "intermediate_size": "n_inner",
    "num_layers": "n_layer",
    "num_heads": "n_head",
    "max_position_embeddings": "n_positions",
    "norm_epsilon": "layer_norm_epsilon",
}
# reorder_and_upcast_attn is not here: it asks for a softmax in float32, which is how we compute it anyway.
_NOT_BUILT: Final = {
    "add_cross_attention": "cross-attention",
    "scale_attn_by_inverse_layer_idx": "attention scaled by the number of the layer",
}


def configure(config: Mapping[str, Any], context_length: int) -> DecoderConfig:
    for name, what in _NOT_BUILT.items():
        if flag(config, name):
            raise NotBuiltError(f"{what} ({name})", param=name)
    whole = {**config, "num_key_value_heads": None, "head_dim": None}
    size = sizes(whole, names=_FIELDS, epsilon=1e-5, defaults={"intermediate_size": 4 * count(config, "n_embd")})
    layers, positions = size["num_layers"], size["max_position_embeddings"]
    if context_length > positions:
        raise ConfigError(
            f"max_model_len ({context_length}) is greater than the {positions} positions that the model learned",
            reason="max_model_len_too_long", param="max_model_len", fix=f"Use at most {positions}: there is no embedding beyond.",
        )  # fmt: skip
    return DecoderConfig(
        **size,
        activation=activation(config, "activation_function", "gelu_new", ACTIVATIONS),
        attention_scale=size["head_dim"] ** -0.5 if flag(config, "scale_attn_weights", True) else 1.0,
        ropes=(),
        layer_ropes=(None,) * layers,
        layer_windows=(None,) * layers,
        tie_word_embeddings=flag(config, "tie_word_embeddings", True),
        norm="layer",
        gated_mlp=False,
        learned_positions=True,
        qkv_bias=True,
        output_bias=True,
        mlp_bias=True,
    )


def _conv1d(source: str, module: str, shape: tuple[str, str], shard: Shard) -> tuple[WeightRule, WeightRule]:
    return with_bias(WeightRule(source, module, shape, shard, transform="transposed"))


def _inside(prefix: str) -> tuple[WeightRule, ...]:
    layer = prefix + "h.{layer}"
    return (
        WeightRule(f"{prefix}wte.weight", "embedding", ("vocab", "hidden"), "rows"),
        WeightRule(f"{prefix}wpe.weight", "positions", ("positions", "hidden")),
        *with_bias(WeightRule(f"{prefix}ln_f.weight", "norm", ("hidden",))),
        *with_bias(WeightRule(f"{layer}.ln_1.weight", ATTENTION_NORM, ("hidden",))),
        *_conv1d(f"{layer}.attn.c_attn.weight", QKV, ("hidden", "qkv"), "rows"),
        *_conv1d(f"{layer}.attn.c_proj.weight", ATTENTION_OUTPUT, ("q", "hidden"), "columns"),
        *with_bias(WeightRule(f"{layer}.ln_2.weight", MLP_NORM, ("hidden",))),
        *_conv1d(f"{layer}.mlp.c_fc.weight", MLP_UP, ("hidden", "ffn"), "rows"),
        *_conv1d(f"{layer}.mlp.c_proj.weight", MLP_DOWN, ("ffn", "hidden"), "columns"),
    )


GPT2: Final = Architecture(
    "GPT2LMHeadModel",
    configure,
    # The oldest checkpoints, those of OpenAI among them, were saved without the model that holds the head.
    safetensors=(
        OneOf((_inside("transformer."), _inside(""))),
        WeightRule("lm_head.weight", "head", ("vocab", "hidden"), "rows"),
    ),
    # Converters store linear layers [out, in].
    gguf=(
        *gguf_weights.ENDS,
        WeightRule("position_embd.weight", "positions", ("positions", "hidden")),
        *gguf_weights.LAYER_NORMS,
        *gguf_weights.FUSED_ATTENTION,
        *gguf_weights.PLAIN_MLP,
    ),
)
