"""The `metadata` of a request: what its caller says about it, in bounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headway.errors import RequestError

MOST_ENTRIES, KEY_BYTES, VALUE_BYTES = 32, 128, 1024


def check_metadata(found: Any) -> None:
    """Raises RequestError unless `found` is None or an object of few short strings."""
    if found is None:
        return
    fits = isinstance(found, Mapping) and len(found) <= MOST_ENTRIES and all(_fits(key, value) for key, value in found.items())
    if not fits:
        bounds = f"at most {MOST_ENTRIES} strings, keys up to {KEY_BYTES} and values up to {VALUE_BYTES} bytes"
        raise RequestError(f"metadata must be an object of {bounds}", param="metadata")


def _fits(key: str, value: Any) -> bool:
    return isinstance(value, str) and 0 < _size(key) <= KEY_BYTES and _size(value) <= VALUE_BYTES


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
