"""Durations as configurations write them: `300s`, `1m30s`, `250ms`, `1.5h`."""

from __future__ import annotations

import re
from typing import Annotated, Final

from pydantic import AfterValidator

from headway.errors import ConfigError

_UNITS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)")
_LONGEST = 100 * 365 * 24 * 3600.0


class DurationError(ConfigError, ValueError):
    """A text that is no duration. It is a ValueError too, so that models of the document report it as a wrong value."""

    reason = "duration_invalid"


def seconds(duration: str | float) -> float:
    """Raises DurationError. 0 needs no unit; a number counts as seconds; nothing is negative or longer than a hundred years."""
    if not isinstance(duration, str):
        return _in_range(float(duration), f"{duration}")
    text = duration.strip()
    if text == "0":
        return 0.0
    total, at = 0.0, 0
    for part in _PART.finditer(text[:64]):
        if part.start() != at:
            break
        total += float(part[1]) * _UNITS[part[2]]
        at = part.end()
    if not text or at != len(text):
        raise DurationError(f'"{duration[:40]}" is no duration', fix="Write it as 30s, 1m30s or 250ms")
    return _in_range(total, duration)


def _in_range(value: float, shown: str) -> float:
    if not 0 <= value <= _LONGEST:
        raise DurationError(f"{shown} is negative or longer than a hundred years", fix="Write it as 30s, 1m30s or 250ms")
    return value


def _readable(text: str) -> str:
    seconds(text)
    return text


def _positive(text: str) -> str:
    if seconds(text) == 0:
        raise DurationError(f'"{text}" must be more than 0', fix="Write it as 30s, 1m30s or 250ms")
    return text


Duration = Annotated[str, AfterValidator(_readable)]
PositiveDuration = Annotated[str, AfterValidator(_positive)]
