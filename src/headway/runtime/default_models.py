"""The models that a worker serves when it is told none."""

from __future__ import annotations

from typing import Final

DEFAULT_MODELS: Final = ("all-minilm-l6-v2", "sparrow-nano", "smollm2-135m-instruct")
"""Embeddings, choices, and decisions of all types through label logits."""
