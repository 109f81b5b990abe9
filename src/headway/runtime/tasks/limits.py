"""The most tokens in one sequence of a package, by its files."""

from __future__ import annotations

from typing import Final

from headway.runtime.package import Package

MAX_INPUTS: Final = 2048  # texts of one request
MAX_DOCUMENTS: Final = 1024
_NO_LIMIT: Final = 1_000_000  # tokenizers without one state 10^30


def input_limit(package: Package, positions: int, is_embedder: bool) -> int:
    """Special tokens included: the positions of the encoder, or less if the package says so.

    An embedder's own `max_seq_length` counts, as in sentence-transformers; other packages may state theirs with the tokenizer.
    """
    stated = (package.json("sentence_bert_config.json") or {}).get("max_seq_length") if is_embedder else None
    if stated is None:
        stated = (package.json("tokenizer_config.json") or {}).get("model_max_length")
    if isinstance(stated, int | float) and not isinstance(stated, bool) and 0 < stated < _NO_LIMIT:
        return min(int(stated), positions)
    return positions
