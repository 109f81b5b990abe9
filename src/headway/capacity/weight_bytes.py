"""Bytes of weights: stored, in memory after loading, and read by one decode step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from headway.artifacts.card import ModelCard, TensorInfo

EMBEDDINGS = ("token_embd.weight", "embed_tokens.weight", "wte.weight", "embed_in.weight", "word_embeddings.weight")
HEADS = ("lm_head.weight", "output.weight", "embed_out.weight")


@dataclass(frozen=True, slots=True)
class IntegerShare:
    """Parameters that stay integers with scales in memory, a tied head's copy among them, and the bytes that they take."""

    parameters: int = 0
    nbytes: int = 0


NO_INTEGERS: Final = IntegerShare()


def loaded_weight_bytes(card: ModelCard, dtype_bytes: int, integers: IntegerShare = NO_INTEGERS) -> int:
    """Bytes when every parameter that is no integer is kept in a dtype of `dtype_bytes`."""
    return held_weight_bytes(card.parameters, head_copy(card), dtype_bytes, integers)


def held_weight_bytes(parameters: int, copied: int, dtype_bytes: int, integers: IntegerShare = NO_INTEGERS) -> int:
    """`copied` parameters are in memory twice: a head that is tied to the embedding keeps a packed copy (see LMHead)."""
    return (parameters + copied - integers.parameters) * dtype_bytes + integers.nbytes


def head_copy(card: ModelCard) -> int:
    """Elements of the embedding that a tied head repeats, 0 for a model with a head of its own or without an embedding."""
    return 0 if _has_head(card) else sum(tensor.elements for tensor in card.tensors.values() if is_embedding(tensor))


def decode_weight_bytes(card: ModelCard, dtype_bytes: int) -> int:
    """Weight bytes that one decode step reads: all, but of an untied input embedding only single rows, counted as none.

    A tied embedding is read in full, as the output head. Mixture-of-experts models read less; this counts all experts.
    """
    skipped = sum(tensor.elements for tensor in card.tensors.values() if _has_head(card) and is_embedding(tensor))
    return (card.parameters - skipped) * dtype_bytes


def is_embedding(tensor: TensorInfo) -> bool:
    """The input table, by the names that checkpoints give it."""
    return tensor.name.endswith(EMBEDDINGS)


def is_head(tensor: TensorInfo) -> bool:
    """The output matrix; blocks of GGUF files have an attn_output.weight each, which is none."""
    return tensor.name.endswith(HEADS) and not tensor.name.startswith(("blk.", "model.layers.", "transformer.h.", "encoder."))


def _has_head(card: ModelCard) -> bool:
    return any(is_head(tensor) for tensor in card.tensors.values())
