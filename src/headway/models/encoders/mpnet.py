"""MPNet: BERT with a bias by distance beside its positions, which are counted as in RoBERTa."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headway.errors import NotBuiltError
from headway.models.encoders.architecture import EncoderArchitecture
from headway.models.encoders.encoder_config import EncoderConfig
from headway.models.encoders.encoder_fields import encoder_sizes
from headway.models.encoders.encoder_weights import BERT_EMBEDDINGS, DISTANCE_BIAS, bert_layer
from headway.models.hf_fields import bad_field, count
from headway.models.weight_rules import WeightRule

_BUCKETS: Final = 32  # transformers reads as many, whatever the config says
_FIRST: Final = 2  # of the rows of positions; those before are for padding


def configure(config: Mapping[str, Any]) -> EncoderConfig:
    rows = count(config, "max_position_embeddings", 512)
    if rows <= _FIRST:
        raise bad_field("max_position_embeddings", f"above {_FIRST}", rows)
    buckets = count(config, "relative_attention_num_buckets", _BUCKETS)
    if buckets != _BUCKETS:
        raise NotBuiltError(f"relative_attention_num_buckets {buckets}; supported: {_BUCKETS}", param="relative_attention_num_buckets")
    return EncoderConfig(
        **encoder_sizes(config, epsilon=1e-12), max_positions=rows - _FIRST, position_rows=rows, position_offset=_FIRST, buckets=buckets
    )


_LAYER: Final = "encoder.layer.{layer}"
_ATTENTION: Final = f"{_LAYER}.attention"

MPNET: Final = EncoderArchitecture(
    ("mpnet",),
    configure,
    (
        *BERT_EMBEDDINGS,
        WeightRule("encoder.relative_attention_bias.weight", DISTANCE_BIAS, ("buckets", "heads")),
        *bert_layer(
            f"{_ATTENTION}.attn.q", f"{_ATTENTION}.attn.k", f"{_ATTENTION}.attn.v", f"{_ATTENTION}.attn.o", f"{_ATTENTION}.LayerNorm",
            f"{_LAYER}.intermediate.dense", f"{_LAYER}.output.dense", f"{_LAYER}.output.LayerNorm",
        ),
    ),
    ("embeddings.position_ids",),
)  # fmt: skip
