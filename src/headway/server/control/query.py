"""Values from the query of a URL. All raise RequestError for what they cannot read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

from fastapi import Request

from headway.errors import RequestError

T = TypeVar("T", bound=str)
_TRUTHS: Final = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}


def word(request: Request, name: str, allowed: Sequence[T], default: T) -> T:
    """One of `allowed`."""
    given = request.query_params.get(name, default)
    for each in allowed:
        if each == given:
            return each
    raise RequestError(f"{name} must be one of {', '.join(allowed)}, got {given[:40]!r}", param=name)


def truth(request: Request, name: str, default: bool) -> bool:
    given = request.query_params.get(name)
    if given is None:
        return default
    if given.lower() not in _TRUTHS:
        raise RequestError(f"{name} must be true or false, got {given[:40]!r}", param=name)
    return _TRUTHS[given.lower()]


def whole_number(request: Request, name: str, default: int) -> int:
    given = request.query_params.get(name)
    if given is None:
        return default
    if not (given.isascii() and given.isdecimal() and len(given) < 10):
        raise RequestError(f"{name} must be a whole number, got {given[:40]!r}", param=name)
    return int(given)
