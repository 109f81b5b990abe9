"""Limits of requests that an operator may change through a VLLM_* variable."""

from __future__ import annotations

import os
from collections.abc import Mapping

from headway.errors import ConfigError


def environment_limit(name: str, default: int, environment: Mapping[str, str] = os.environ) -> int:
    """The variable as a number of at least 1, or `default`. Raises ConfigError for anything else."""
    text = environment.get(name, "").strip()
    if not text:
        return default
    if not (text.isascii() and text.isdecimal() and int(text[:19]) > 0):
        shown = text if len(text) <= 40 else text[:37] + "..."
        raise ConfigError(f"{name} must be a whole number of at least 1, got {shown!r}", param=name)
    return int(text)
