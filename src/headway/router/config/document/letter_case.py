"""Words of a configuration document that are read in any case."""

from __future__ import annotations

from typing import Any

from pydantic import BeforeValidator


def _upper(found: Any) -> Any:
    return found.strip().upper() if isinstance(found, str) else found


def _lower(found: Any) -> Any:
    return found.strip().lower() if isinstance(found, str) else found


UPPER_CASE, LOWER_CASE = BeforeValidator(_upper), BeforeValidator(_lower)
"""Beside a Literal of upper-case, or lower-case, words."""
