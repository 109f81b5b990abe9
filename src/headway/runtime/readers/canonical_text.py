"""Values of a request as the text that decision models were trained on."""

from __future__ import annotations

import json
from typing import Any, Final

DEFAULT_INSTRUCTIONS: Final = "Choose the best matching option."
"""For questions without instructions, on models that always saw some. Decision 3 brings this sentence; the others take it over."""


def canonical_text(value: Any) -> str:
    """Text as it is; anything else as JSON with sorted keys, no spaces, and characters unescaped.

    Raises ValueError for numbers that are not finite.
    """
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)


def instructions_text(value: Any) -> str:
    """`canonical_text`, or the default for none or blank ones."""
    text = "" if value is None else canonical_text(value)
    return text if text.strip() else DEFAULT_INSTRUCTIONS
