"""FalconForCausalLM, in its three forms.

Falcon 7B: attention and feed-forward side by side behind one norm, one key head for all queries. Falcon 40B and 180B (the
"new decoder"): side by side, each behind a norm of its own, a key head for every group of queries; Falcon 11B the same
behind one norm. Falcon RW: one after the other, a key head for every query head, ALiBi instead of rotation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from headway.models import gguf_weights
from headway.models.architecture import Architecture
from headway.models.decoder_config import DecoderConfig
from headway.models.hf_fields import ACTIVATIONS, SIZE_FIELDS, activation, bad_field, count, flag, sizes
from headway.models.hf_rope import rope_spec
from headway.models.module_paths import ATTENTION_NORM, ATTENTION_OUTPUT, MLP_DOWN, MLP_NORM, MLP_UP, QKV
from headway.models.weight_rules import OneOf, Switch, WeightRule, with_bias

_FIELDS: Final = {
    **SIZE_FIELDS,
    "intermediate_size": "ffn_hidden_size",
    "num_kv_heads": "num_kv_heads",
    "norm_epsilon": "layer_norm_epsilon",
}


@dataclass(frozen=True, slots=True)
class _Form:
    kv_heads: int | None  # None: as many as query heads
    parallel: bool
    norms: int


def configure(config: Mapping[str, Any], context_length: int) -> DecoderConfig:
    alibi = flag(config, "alibi")
    form = _form(config)
    whole = {**config, "num_kv_heads": form.kv_heads, "head_dim": None}
    defaults = {"intermediate_size": 4 * count(config, "hidden_size"), "max_position_embeddings": 2_048}
    size = sizes(whole, names=_FIELDS, epsilon=1e-5, defaults=defaults)
    layers, bias = size["num_layers"], flag(config, "bias")
    rotated = {**config, "max_position_embeddings": size["max_position_embeddings"]}
    return DecoderConfig(
        **size,
        activation=activation(config, "activation", "gelu", ACTIVATIONS),
        attention_scale=size["head_dim"] ** -0.5,
        ropes=() if alibi else (rope_spec(rotated, size["head_dim"], context_length),),
        layer_ropes=(None if alibi else 0,) * layers,
        layer_windows=(None,) * layers,
        tie_word_embeddings=flag(config, "tie_word_embeddings", True),
        norm="layer",
        gated_mlp=False,
        parallel_residual=form.parallel,
        mlp_norm=form.norms == 2,
        alibi=alibi,
        qkv_bias=bias,
        output_bias=bias,
        mlp_bias=bias,
    )


def _form(config: Mapping[str, Any]) -> _Form:
    """Which of the forms. Raises ArtifactError (`invalid_model_config`) for mixtures that transformers cannot run either."""
    new, parallel = flag(config, "new_decoder_architecture"), flag(config, "parallel_attn", True)
    norms = config.get("num_ln_in_parallel_attn")
    if new:
        if not parallel:
            raise bad_field("parallel_attn", "true with new_decoder_architecture", parallel)
        if norms not in (None, 1, 2):
            raise bad_field("num_ln_in_parallel_attn", "1 or 2", norms)
        return _Form(None if config.get("num_kv_heads") is None else count(config, "num_kv_heads"), True, norms or 2)
    if parallel and norms not in (None, 1):
        raise bad_field("num_ln_in_parallel_attn", "1 without new_decoder_architecture", norms)
    return _Form(1 if flag(config, "multi_query", True) else None, parallel, 1 if parallel else 2)


_LAYER: Final = "transformer.h.{layer}"


def _norm(name: str, new_name: str, module: str, when: Switch | None = None) -> OneOf:
    """The two norms of the new decoder have names of their own."""
    old, new = (WeightRule(f"{_LAYER}.{found}.weight", module, ("hidden",), when=when) for found in (name, new_name))
    return OneOf((with_bias(old), with_bias(new)))


FALCON: Final = Architecture(
    "FalconForCausalLM",
    configure,
    safetensors=(
        WeightRule("transformer.word_embeddings.weight", "embedding", ("vocab", "hidden"), "rows"),
        WeightRule("lm_head.weight", "head", ("vocab", "hidden"), "rows"),
        *with_bias(WeightRule("transformer.ln_f.weight", "norm", ("hidden",))),
        _norm("input_layernorm", "ln_attn", ATTENTION_NORM),
        *with_bias(
            WeightRule(
                f"{_LAYER}.self_attention.query_key_value.weight", QKV, ("qkv", "hidden"), "rows", transform="grouped_qkv"
            ),
            "qkv_bias",
        ),
        *with_bias(
            WeightRule(f"{_LAYER}.self_attention.dense.weight", ATTENTION_OUTPUT, ("hidden", "q"), "columns"),
            "output_bias",
        ),
        _norm("post_attention_layernorm", "ln_mlp", MLP_NORM, "mlp_norm"),
        *with_bias(WeightRule(f"{_LAYER}.mlp.dense_h_to_4h.weight", MLP_UP, ("ffn", "hidden"), "rows"), "mlp_bias"),
        *with_bias(WeightRule(f"{_LAYER}.mlp.dense_4h_to_h.weight", MLP_DOWN, ("hidden", "ffn"), "columns"), "mlp_bias"),
    ),
    gguf=(
        *gguf_weights.ENDS,
        *with_bias(WeightRule("output_norm.weight", "norm", ("hidden",))),
        *with_bias(WeightRule("blk.{layer}.attn_norm.weight", ATTENTION_NORM, ("hidden",))),
        *gguf_weights.FUSED_ATTENTION,
        *gguf_weights.PLAIN_MLP,
    ),
    gguf_unconfirmed=lambda config: "several key heads" if config.num_kv_heads > 1 or config.mlp_norm else None,
)
