"""DeBERTa version 2 and 3, mDeBERTa: scores of content and of distance apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headway.errors import NotBuiltError
from headway.kernels.interface import Activation
from headway.layers.disentangled_attention import Disentangled
from headway.models.encoders.architecture import EncoderArchitecture
from headway.models.encoders.encoder_config import Convolution, EncoderConfig
from headway.models.encoders.encoder_fields import encoder_sizes
from headway.models.encoders.encoder_weights import (
    DISTANCE_NORM,
    DISTANCES,
    EMBEDDING_NORM,
    EMBEDDING_PROJECTION,
    POSITION_KEY,
    POSITION_QUERY,
    POSITIONS,
    SEGMENTS,
    WORDS,
    bert_layer,
    norm,
)
from headway.models.hf_fields import ACTIVATIONS, activation, bad_field, count, flag
from headway.models.weight_rules import WeightRule, with_bias

_TERMS: Final = ("c2p", "p2c")


def configure(config: Mapping[str, Any]) -> EncoderConfig:
    size = encoder_sizes(config, epsilon=1e-7)
    hidden, positions = size["hidden_size"], count(config, "max_position_embeddings", 512)
    if count(config, "attention_head_size", hidden // size["num_heads"]) * size["num_heads"] != hidden:
        raise NotBuiltError("heads that do not add up to the hidden size (attention_head_size)", param="attention_head_size")
    embedding = count(config, "embedding_size", hidden)
    return EncoderConfig(
        **size,
        max_positions=positions,
        position_rows=positions if flag(config, "position_biased_input", True) else 0,
        segment_rows=_optional(config, "type_vocab_size"),
        embedding_size=None if embedding == hidden else embedding,
        disentangled=_disentangled(config, positions),
        convolution=_convolution(config, hidden),
    )


def _optional(config: Mapping[str, Any], name: str) -> int:
    """A count where 0, a negative number and nothing at all mean that there is none."""
    value = config.get(name)
    none = value is None or (isinstance(value, int) and not isinstance(value, bool) and value <= 0)
    return 0 if none else count(config, name)


def _disentangled(config: Mapping[str, Any], positions: int) -> Disentangled:
    if not flag(config, "relative_attention"):
        raise NotBuiltError("DeBERTa without relative_attention", param="relative_attention")
    terms = config.get("pos_att_type") or []
    terms = [term.strip() for term in terms.lower().split("|")] if isinstance(terms, str) else terms
    if not isinstance(terms, list) or not set(terms) <= set(_TERMS):
        raise NotBuiltError(f"pos_att_type {terms!r:.60}; supported: {', '.join(_TERMS)}", param="pos_att_type")
    farthest = _optional(config, "max_relative_positions") or positions
    buckets = _optional(config, "position_buckets")
    if buckets == 1 or (buckets and farthest - 1 <= buckets // 2):
        raise bad_field("position_buckets", f"from 2 to less than twice the farthest distance ({farthest})", buckets)
    kinds = config.get("norm_rel_ebd", "none")
    if not isinstance(kinds, str):
        raise bad_field("norm_rel_ebd", "a text", kinds)
    return Disentangled(
        span=buckets or farthest, farthest=farthest, buckets=buckets, content_to_position="c2p" in terms,
        position_to_content="p2c" in terms, shared=flag(config, "share_att_key"),
        normalized="layer_norm" in [kind.strip() for kind in kinds.lower().split("|")],
    )  # fmt: skip


def _convolution(config: Mapping[str, Any], hidden: int) -> Convolution | None:
    tokens = _optional(config, "conv_kernel_size")
    if not tokens:
        return None
    groups = count(config, "conv_groups", 1)
    if tokens % 2 == 0 or hidden % groups:
        raise bad_field("conv_kernel_size", f"odd, with conv_groups a divisor of {hidden}", (tokens, groups))
    name = config.get("conv_act", "tanh")
    known: Mapping[str, Activation] = ACTIVATIONS
    return Convolution(tokens, groups, None if name == "tanh" else activation(config, "conv_act", "tanh", known))


_LAYER: Final = "encoder.layer.{layer}"
_ATTENTION: Final = f"{_LAYER}.attention"
_SELF: Final = f"{_ATTENTION}.self"

DEBERTA_V2: Final = EncoderArchitecture(
    ("deberta-v2",),
    configure,
    (
        WeightRule("embeddings.word_embeddings.weight", WORDS, ("vocab", "embedding")),
        WeightRule("embeddings.position_embeddings.weight", POSITIONS, ("positions", "embedding"), when="position_rows"),
        WeightRule("embeddings.token_type_embeddings.weight", SEGMENTS, ("segments", "embedding"), when="segment_rows"),
        WeightRule("embeddings.embed_proj.weight", EMBEDDING_PROJECTION, ("hidden", "embedding"), when="factorized"),
        norm("embeddings.LayerNorm", EMBEDDING_NORM),
        WeightRule("encoder.rel_embeddings.weight", DISTANCES, ("distances", "hidden")),
        *with_bias(WeightRule("encoder.LayerNorm.weight", DISTANCE_NORM, ("hidden",), when="normalized_distances")),
        *with_bias(WeightRule("encoder.conv.conv.weight", "convolution", ("hidden", "conv_in", "conv_tokens"), when="convolution")),
        *with_bias(WeightRule("encoder.conv.LayerNorm.weight", "convolution.norm", ("hidden",), when="convolution")),
        *with_bias(
            WeightRule(f"{_SELF}.pos_key_proj.weight", POSITION_KEY, ("hidden", "hidden"), when="own_position_keys")
        ),
        *with_bias(
            WeightRule(f"{_SELF}.pos_query_proj.weight", POSITION_QUERY, ("hidden", "hidden"), when="own_position_queries")
        ),
        *bert_layer(
            f"{_SELF}.query_proj", f"{_SELF}.key_proj", f"{_SELF}.value_proj", f"{_ATTENTION}.output.dense",
            f"{_ATTENTION}.output.LayerNorm", f"{_LAYER}.intermediate.dense", f"{_LAYER}.output.dense", f"{_LAYER}.output.LayerNorm",
        ),
    ),
    ("embeddings.position_ids", "embeddings.position_embeddings.weight"),
)  # fmt: skip
