"""How far two results of the same computation are apart, whatever they are made of."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

APART: Final = math.inf  # different in kind, so that no tolerance lets it pass


def difference(first: Any, second: Any) -> float:
    """The largest difference between numbers at the same place, relative to the larger of 1 and the largest number beside
    them (float32 cannot be exact to 1e-5 above 100). Infinite where shapes, keys or anything but numbers differ."""
    if _is_number(first) and _is_number(second):
        return _apart(np.float64(first), np.float64(second))
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        return _arrays(first, second)
    if dataclasses.is_dataclass(first) and type(first) is type(second) and not isinstance(first, type):
        names = [each.name for each in dataclasses.fields(first)]
        return max((difference(getattr(first, name), getattr(second, name)) for name in names), default=0.0)
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        if list(first) != list(second):
            return APART
        return max((difference(first[key], second[key]) for key in first), default=0.0)
    if isinstance(first, str | bytes) or isinstance(second, str | bytes):
        return 0.0 if first == second else APART
    if isinstance(first, Sequence) and isinstance(second, Sequence):
        if len(first) != len(second):
            return APART
        return max((difference(a, b) for a, b in zip(first, second, strict=True)), default=0.0)
    return 0.0 if type(first) is type(second) and bool(first == second) else APART


def is_finite(value: Any) -> bool:
    """No NaN and no infinity anywhere inside."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, np.ndarray):
        return value.dtype.kind not in "fc" or bool(np.isfinite(value).all())
    if isinstance(value, Mapping):
        return all(is_finite(each) for each in value.values())
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return all(is_finite(each) for each in value)
    return True


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool | np.bool_)


def _arrays(first: np.ndarray[Any, Any], second: np.ndarray[Any, Any]) -> float:
    if first.shape != second.shape or first.dtype != second.dtype:
        return APART
    if first.size == 0 or first.dtype.kind not in "fiu":
        return 0.0 if np.array_equal(first, second) else APART
    return _apart(first.astype(np.float64), second.astype(np.float64))


def _apart(first: Any, second: Any) -> float:
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        return 0.0 if np.array_equal(first, second, equal_nan=True) else APART
    scale = max(1.0, float(np.abs(first).max()), float(np.abs(second).max()))
    return float(np.abs(first - second).max()) / scale
