"""Where the weights of a layer go: attribute paths of `decoder.Decoder`, for weight tables."""

from __future__ import annotations

from typing import Final

ATTENTION_NORM: Final = "layers.{layer}.attention_norm"
HEAD_NORM: Final = "layers.{layer}.attention.head_norm"
QKV: Final = "layers.{layer}.attention.qkv"
ATTENTION_OUTPUT: Final = "layers.{layer}.attention.output.projection"
ATTENTION_POST_NORM: Final = "layers.{layer}.attention.output.norm"
MLP_NORM: Final = "layers.{layer}.mlp_norm"
MLP_GATE_UP: Final = "layers.{layer}.mlp.gate_up"
MLP_UP: Final = "layers.{layer}.mlp.up"
MLP_DOWN: Final = "layers.{layer}.mlp.down.projection"
MLP_POST_NORM: Final = "layers.{layer}.mlp.down.norm"
