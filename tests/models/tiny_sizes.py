"""Sizes of the tiny models."""

from __future__ import annotations

SIZES = {
    "vocab_size": 160, "hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4, "num_key_value_heads": 2,
    "max_position_embeddings": 256, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
}  # fmt: skip
TOKENS = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
WINDOW = 16
SERVED = 128  # the longest sequence of a deployment
ORIGINAL_CONTEXT = 32  # where rope scaling begins to matter; sequences in the tests are 100 long
