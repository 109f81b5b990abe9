"""Bytes of weights: stored, in memory after loading, and read by one decode step."""

from __future__ import annotations

from headway.artifacts.card import ModelCard

_EMBEDDINGS = ("token_embd.weight", "embed_tokens.weight", "wte.weight")
_HEADS = ("lm_head.weight", "output.weight")


def loaded_weight_bytes(card: ModelCard, dtype_bytes: int) -> int:
    """Bytes when every parameter is kept in a dtype of `dtype_bytes` (how GGUF and dense checkpoints are run)."""
    return card.parameters * dtype_bytes


def decode_weight_bytes(card: ModelCard, dtype_bytes: int) -> int:
    """Weight bytes that one decode step reads: all, but of an untied input embedding only single rows, counted as none.

    A tied embedding is read in full, as the output head. Mixture-of-experts models read less; this counts all experts.
    """
    has_head = any(name.endswith(_HEADS) and not name.startswith("blk.") for name in card.tensors)
    skipped = sum(tensor.elements for name, tensor in card.tensors.items() if has_head and name.endswith(_EMBEDDINGS))
    return (card.parameters - skipped) * dtype_bytes
