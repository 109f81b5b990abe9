"""Patterns for module names that a checkpoint brings: matched in linear time, since the file comes from anybody."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import re2

from headway.errors import NotBuiltError


def begins_with(name: str, pattern: str) -> bool:
    """Whether a match of `pattern` begins at the start of `name`. Raises NotBuiltError (`quantization_not_built`) for patterns that
    need more than RE2."""
    return _compiled(pattern).match(name) is not None


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error:
        raise NotBuiltError(
            f"the quantization section names modules by {pattern!r:.120}, which is no pattern that RE2 reads",
            reason="quantization_not_built", param="quantization",
            fix="Write it without look-around and back references in the quantization section.",
        ) from None  # fmt: skip
