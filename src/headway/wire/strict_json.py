"""JSON as the runtime writes it: compact UTF-8, without NaN and infinity."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import orjson


class NotFiniteError(ValueError):
    """A number that JSON cannot carry."""


def dumps(value: Any) -> bytes:
    """numpy arrays are written as lists. Raises NotFiniteError instead of writing null for a number that is not finite."""
    written = orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)
    if b"null" in written:  # orjson writes such numbers so; a look at every number is needed only then
        _require_finite(value)
    return written


def _require_finite(value: Any) -> None:
    if isinstance(value, float):
        if not math.isfinite(value):
            raise NotFiniteError("an answer holds a number that is not finite")
    elif isinstance(value, np.ndarray | np.floating):
        if not np.isfinite(value).all():
            raise NotFiniteError("an answer holds a number that is not finite")
    elif isinstance(value, dict):
        for part in value.values():
            _require_finite(part)
    elif isinstance(value, list | tuple):
        for part in value:
            _require_finite(part)
