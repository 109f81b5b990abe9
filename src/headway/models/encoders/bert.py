"""BERT, and RoBERTa with XLM-RoBERTa and CamemBERT, which count positions from another row of their table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headway.errors import NotBuiltError
from headway.models.encoders.architecture import EncoderArchitecture
from headway.models.encoders.encoder_config import EncoderConfig
from headway.models.encoders.encoder_fields import encoder_sizes, row_of_first_token
from headway.models.encoders.encoder_weights import BERT_EMBEDDINGS, SEGMENTS, bert_layer
from headway.models.hf_fields import count, flag
from headway.models.weight_rules import WeightRule


def configure_bert(config: Mapping[str, Any]) -> EncoderConfig:
    _refuse_variants(config)
    positions = count(config, "max_position_embeddings", 512)
    return EncoderConfig(
        **encoder_sizes(config, epsilon=1e-12), max_positions=positions, position_rows=positions,
        segment_rows=count(config, "type_vocab_size", 2),
    )  # fmt: skip


def configure_roberta(config: Mapping[str, Any]) -> EncoderConfig:
    _refuse_variants(config)
    rows = count(config, "max_position_embeddings", 512)
    first = row_of_first_token(config, rows)
    return EncoderConfig(
        **encoder_sizes(config, epsilon=1e-12), max_positions=rows - first, position_rows=rows, position_offset=first,
        segment_rows=count(config, "type_vocab_size", 2),
    )  # fmt: skip


def _refuse_variants(config: Mapping[str, Any]) -> None:
    kind = config.get("position_embedding_type") or "absolute"
    if kind != "absolute":
        raise NotBuiltError(f"position_embedding_type {kind!r:.40}; supported: absolute", param="position_embedding_type")
    for name in ("is_decoder", "add_cross_attention"):
        if flag(config, name):
            raise NotBuiltError(f"a decoder of this architecture ({name})", param=name)


_LAYER: Final = "encoder.layer.{layer}"
_ATTENTION: Final = f"{_LAYER}.attention"
_TABLE: Final = (
    *BERT_EMBEDDINGS,
    WeightRule("embeddings.token_type_embeddings.weight", SEGMENTS, ("segments", "hidden")),
    *bert_layer(
        f"{_ATTENTION}.self.query", f"{_ATTENTION}.self.key", f"{_ATTENTION}.self.value", f"{_ATTENTION}.output.dense",
        f"{_ATTENTION}.output.LayerNorm", f"{_LAYER}.intermediate.dense", f"{_LAYER}.output.dense", f"{_LAYER}.output.LayerNorm",
    ),
)  # fmt: skip

BERT: Final = EncoderArchitecture(("bert",), configure_bert, _TABLE, ("embeddings.position_ids",))
ROBERTA: Final = EncoderArchitecture(("roberta", "xlm-roberta", "camembert"), configure_roberta, _TABLE, ("embeddings.position_ids",))
