"""Cosine of two vectors."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt

_EPSILON: Final = 1e-12


def cosine(first: npt.NDArray[np.float32], second: npt.NDArray[np.float32]) -> float:
    """In float64, -1 to 1; 0 where a vector has no direction."""
    a, b = first.astype(np.float64), second.astype(np.float64)
    length = math.sqrt(a.dot(a)) * math.sqrt(b.dot(b))
    return 0.0 if length < _EPSILON else float(min(1.0, max(-1.0, a.dot(b) / length)))
