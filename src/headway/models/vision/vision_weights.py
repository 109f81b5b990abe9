"""Where the tensors of a checkpoint go in `tower.SiglipTower`."""

from __future__ import annotations

from typing import Final

from headway.models.encoders.encoder_weights import linear
from headway.models.module_paths import ATTENTION_NORM, ATTENTION_OUTPUT, MLP_DOWN, MLP_NORM, MLP_UP, QKV
from headway.models.weight_rules import WeightRule, with_bias

TOWER: Final = "model.vision_model."
CONNECTOR: Final = "model.connector."
_LAYER: Final = f"{TOWER}encoder.layers.{{layer}}"
_ATTENTION: Final = f"{_LAYER}.self_attn"
_SQUARE: Final = ("hidden", "hidden")

VISION_TABLE: Final = (
    *with_bias(WeightRule(f"{TOWER}embeddings.patch_embedding.weight", "patches", ("hidden", "channels", "pixels", "pixels"))),
    WeightRule(f"{TOWER}embeddings.position_embedding.weight", "positions", ("patches", "hidden")),
    *linear(f"{_ATTENTION}.q_proj", QKV, _SQUARE),
    *linear(f"{_ATTENTION}.k_proj", QKV, _SQUARE),
    *linear(f"{_ATTENTION}.v_proj", QKV, _SQUARE),
    *linear(f"{_ATTENTION}.out_proj", ATTENTION_OUTPUT, _SQUARE),
    *with_bias(WeightRule(f"{_LAYER}.layer_norm1.weight", ATTENTION_NORM, ("hidden",))),
    *with_bias(WeightRule(f"{_LAYER}.layer_norm2.weight", MLP_NORM, ("hidden",))),
    *linear(f"{_LAYER}.mlp.fc1", MLP_UP, ("ffn", "hidden")),
    *linear(f"{_LAYER}.mlp.fc2", MLP_DOWN, ("hidden", "ffn")),
    *with_bias(WeightRule(f"{TOWER}post_layernorm.weight", "norm", ("hidden",))),
    WeightRule(f"{CONNECTOR}modality_projection.proj.weight", "connector", ("output", "shuffled")),
)
