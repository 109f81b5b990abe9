"""Weight tables of encoders: where tensors go, and the names that BERT gave to many of its relatives."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from headway.models.module_paths import ATTENTION_NORM, ATTENTION_OUTPUT, MLP_DOWN, MLP_NORM, MLP_UP, QKV
from headway.models.weight_rules import OneOf, WeightRule, with_bias

WORDS: Final = "embedding.words"
POSITIONS: Final = "embedding.positions"
SEGMENTS: Final = "embedding.segments"
EMBEDDING_NORM: Final = "embedding.norm"
EMBEDDING_PROJECTION: Final = "embedding.projection"
FINAL_NORM: Final = "norm"
DISTANCE_BIAS: Final = "distance_bias"
DISTANCES: Final = "distances"
DISTANCE_NORM: Final = "distance_norm"
POSITION_KEY: Final = "layers.{layer}.attention.position_key"
POSITION_QUERY: Final = "layers.{layer}.attention.position_query"


def norm(source: str, module: str) -> OneOf:
    """LayerNorm named `source` [hidden]. Checkpoints converted from TensorFlow say gamma and beta."""
    spelled = with_bias(WeightRule(f"{source}.weight", module, ("hidden",)))
    return OneOf((spelled, tuple(replace(rule, source=f"{source}.{name}") for rule, name in zip(spelled, ("gamma", "beta"), strict=True))))


BERT_EMBEDDINGS: Final = (
    WeightRule("embeddings.word_embeddings.weight", WORDS, ("vocab", "hidden")),
    WeightRule("embeddings.position_embeddings.weight", POSITIONS, ("positions", "hidden")),
    norm("embeddings.LayerNorm", EMBEDDING_NORM),
)


def linear(source: str, module: str, shape: tuple[str, str]) -> tuple[WeightRule, ...]:
    """A matrix [out, in] and its bias."""
    return with_bias(WeightRule(f"{source}.weight", module, shape))


def bert_layer(query: str, key: str, value: str, output: str, output_norm: str, up: str, down: str, down_norm: str) -> tuple[WeightRule | OneOf, ...]:
    """The tensors of a layer of BERT, by the names of its parts, {layer} in them."""
    return (
        *linear(query, QKV, ("hidden", "hidden")),
        *linear(key, QKV, ("hidden", "hidden")),
        *linear(value, QKV, ("hidden", "hidden")),
        *linear(output, ATTENTION_OUTPUT, ("hidden", "hidden")),
        norm(output_norm, ATTENTION_NORM),
        *linear(up, MLP_UP, ("ffn", "hidden")),
        *linear(down, MLP_DOWN, ("hidden", "ffn")),
        norm(down_norm, MLP_NORM),
    )
