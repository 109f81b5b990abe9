"""How long a request may take: what its client says, else what the server says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from headway.errors import RequestError

HEADER: Final = "x-request-timeout-ms"
_MOST: Final = 7 * 24 * 3600 * 1000


def seconds_allowed(headers: Mapping[str, str], default: float) -> float | None:
    """From the header in milliseconds, else `default` in seconds; None = as long as it takes. Raises RequestError."""
    given = headers.get(HEADER)
    if given is None:
        return default or None
    if not (given.isascii() and given.isdecimal() and len(given) < 12 and 1 <= int(given) <= _MOST):
        raise RequestError(
            f"{HEADER} must be a whole number of milliseconds from 1 to {_MOST}, got {given[:40]!r}", param=HEADER
        )
    return int(given) / 1000
