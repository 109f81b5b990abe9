"""Limits that every decision reader keeps, as the card of a model names them."""

from __future__ import annotations

from typing import Final

MIN_OPTIONS: Final = 2
MAX_OPTIONS: Final = 255
MIN_LEVELS: Final = 2
MAX_LEVELS: Final = 10


def decision_limits(max_input_tokens: int) -> dict[str, int]:
    """`limits` of a model that reads so many tokens at once."""
    return {
        "max_input_tokens": max_input_tokens, "min_options": MIN_OPTIONS, "max_options": MAX_OPTIONS,
        "min_levels": MIN_LEVELS, "max_levels": MAX_LEVELS,
    }  # fmt: skip
