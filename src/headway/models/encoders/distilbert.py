"""DistilBERT: BERT without token types, with names of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headway.models.encoders.architecture import EncoderArchitecture
from headway.models.encoders.encoder_config import EncoderConfig
from headway.models.encoders.encoder_fields import encoder_sizes
from headway.models.encoders.encoder_weights import BERT_EMBEDDINGS, bert_layer
from headway.models.hf_fields import count

_FIELDS: Final = {"hidden_size": "dim", "intermediate_size": "hidden_dim", "num_layers": "n_layers", "num_heads": "n_heads"}
_EPSILON: Final = 1e-12  # its config has no field for it


def configure(config: Mapping[str, Any]) -> EncoderConfig:
    positions = count(config, "max_position_embeddings", 512)
    size = encoder_sizes(
        {**config, "layer_norm_eps": _EPSILON}, names=_FIELDS, epsilon=_EPSILON, activation_name="activation"
    )
    return EncoderConfig(**size, max_positions=positions, position_rows=positions)


_LAYER: Final = "transformer.layer.{layer}"
_ATTENTION: Final = f"{_LAYER}.attention"

DISTILBERT: Final = EncoderArchitecture(
    ("distilbert",),
    configure,
    (
        *BERT_EMBEDDINGS,
        *bert_layer(
            f"{_ATTENTION}.q_lin", f"{_ATTENTION}.k_lin", f"{_ATTENTION}.v_lin", f"{_ATTENTION}.out_lin", f"{_LAYER}.sa_layer_norm",
            f"{_LAYER}.ffn.lin1", f"{_LAYER}.ffn.lin2", f"{_LAYER}.output_layer_norm",
        ),
    ),
    ("embeddings.position_ids",),
)  # fmt: skip
