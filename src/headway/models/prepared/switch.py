"""How much disk prepared weights may take, and whether they are kept at all."""

from __future__ import annotations

import os
from typing import Final

from headway.errors import ConfigError
from headway.flags.values import read_size

VARIABLE: Final = "HEADWAY_PREPARED_WEIGHTS"
DEFAULT_BYTES: Final = 16 << 30
_OFF: Final = frozenset({"0", "off", "false", "no"})


def most_bytes() -> int:
    """Bytes that all prepared weights together may take; 0 = none are kept or used. Raises ConfigError (`invalid_config`)."""
    text = os.environ.get(VARIABLE, "").strip()
    if not text:
        return DEFAULT_BYTES
    if text.lower() in _OFF:
        return 0
    try:
        size = read_size(text)
    except ValueError as error:
        raise ConfigError(
            f"{VARIABLE} must be `off` or the bytes that prepared weights may take ({error}), got {text!r:.60}", param=VARIABLE,
            fix=f"For example {VARIABLE}=32GiB.",
        ) from None  # fmt: skip
    return max(size, 0)
