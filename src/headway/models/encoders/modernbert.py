"""ModernBERT and mmBERT: rotary positions, global layers among local ones, a gate, norms before what they feed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headway.kernels.interface import Activation
from headway.layers.rope_frequencies import RopeSpec
from headway.models.encoders.architecture import EncoderArchitecture
from headway.models.encoders.encoder_config import EncoderConfig
from headway.models.encoders.encoder_fields import encoder_sizes
from headway.models.encoders.encoder_weights import EMBEDDING_NORM, FINAL_NORM, WORDS
from headway.models.hf_fields import count, flag, layer_types, number
from headway.models.hf_rope import rope_settings, rope_sizes, scaled_rope
from headway.models.module_paths import ATTENTION_NORM, ATTENTION_OUTPUT, MLP_DOWN, MLP_GATE_UP, MLP_NORM, QKV
from headway.models.weight_rules import WeightRule, with_bias

_ACTIVATIONS: Final[dict[str, Activation]] = {
    "gelu": "gelu", "gelu_python": "gelu", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "silu": "silu",
}  # fmt: skip
# Kind of layer -> where old configs have its theta, and what that is where they have not.
_KINDS: Final = {"full_attention": ("global_rope_theta", 160_000.0), "sliding_attention": ("local_rope_theta", 10_000.0)}


def configure(config: Mapping[str, Any]) -> EncoderConfig:
    size = encoder_sizes(
        config, names={"norm_epsilon": "norm_eps"}, epsilon=1e-5, activation_name="hidden_activation", activations=_ACTIVATIONS
    )
    every = count(config, "global_attn_every_n_layers", 3)
    kinds = layer_types(
        config, ["sliding_attention" if i % every else "full_attention" for i in range(size["num_layers"])]
    )
    reach = count(config, "local_attention", 128) // 2
    return EncoderConfig(
        **size,
        max_positions=count(config, "max_position_embeddings", 8192),
        pre_norms=True,
        gated_mlp=True,
        qkv_bias=flag(config, "attention_bias"),
        output_bias=flag(config, "attention_bias"),
        mlp_bias=flag(config, "mlp_bias"),
        norm_bias=flag(config, "norm_bias"),
        ropes=tuple(_rope(config, kind, size["hidden_size"] // size["num_heads"]) for kind in _KINDS),
        layer_ropes=tuple(list(_KINDS).index(kind) for kind in kinds),
        layer_reaches=tuple(reach if kind == "sliding_attention" else None for kind in kinds),
    )


def _rope(config: Mapping[str, Any], kind: str, head_dim: int) -> RopeSpec:
    """Configs of transformers 5 have settings for each kind; older ones a theta for each, and one scaling for both."""
    field, default = _KINDS[kind]
    per_kind = rope_settings(config, "rope_parameters")
    settings = {**rope_settings(per_kind, kind), **rope_settings(config, "rope_scaling")}
    sizes = rope_sizes({"max_position_embeddings": 8192, **config}, head_dim, count(config, "max_position_embeddings", 8192))
    return scaled_rope(settings, number(config, field, default), sizes)


_LAYER: Final = "layers.{layer}"


def _norm(source: str, module: str, first_layer: int = 0) -> tuple[WeightRule, WeightRule]:
    return with_bias(WeightRule(f"{source}.weight", module, ("hidden",), first_layer=first_layer), "norm_bias")


MODERNBERT: Final = EncoderArchitecture(
    ("modernbert",),
    configure,
    (
        WeightRule("embeddings.tok_embeddings.weight", WORDS, ("vocab", "hidden")),
        *_norm("embeddings.norm", EMBEDDING_NORM),
        *_norm("final_norm", FINAL_NORM),
        # The first layer reads the embedding, which is normalised already.
        *_norm(f"{_LAYER}.attn_norm", ATTENTION_NORM, first_layer=1),
        *with_bias(WeightRule(f"{_LAYER}.attn.Wqkv.weight", QKV, ("qkv", "hidden")), "qkv_bias"),
        *with_bias(WeightRule(f"{_LAYER}.attn.Wo.weight", ATTENTION_OUTPUT, ("hidden", "hidden")), "output_bias"),
        *_norm(f"{_LAYER}.mlp_norm", MLP_NORM),
        *with_bias(WeightRule(f"{_LAYER}.mlp.Wi.weight", MLP_GATE_UP, ("gate_up", "hidden")), "mlp_bias"),
        *with_bias(WeightRule(f"{_LAYER}.mlp.Wo.weight", MLP_DOWN, ("hidden", "ffn")), "mlp_bias"),
    ),
)
