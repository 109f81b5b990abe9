"""Limits on a body that are checked on its bytes, before any parser builds objects from it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from headway.errors import RequestError

MAX_SCAN_TOKENS: Final = 1 << 22  # of one input, over all windows: the most that a request may allow
MAX_CONTAINERS: Final = 500_000  # objects and lists of one body: more would keep the event loop from everybody else for seconds
MAX_STRINGS: Final = 2_000_000
_BRACKETS = b'{}[]"'
_NOT_BRACKETS = bytes(c for c in range(256) if c not in _BRACKETS)
_STEPS = bytes(1 if c in b"{[" else 255 for c in range(256))  # read as signed: 1 down, 1 up


@dataclass(frozen=True, slots=True)
class BodyLimits:
    """`max_bytes` of a body and `max_depth` of nested objects and lists in it."""

    max_bytes: int = 32 * 1024 * 1024
    max_depth: int = 64


def too_large(limits: BodyLimits) -> RequestError:
    return RequestError(
        f"The body is larger than {limits.max_bytes} bytes",
        reason="body_too_large",
        fix="Send less, or raise --max-request-bytes.",
    )


def nesting_depth(raw: bytes) -> int:
    """Deepest nesting of brackets outside strings, for valid JSON; an estimate for anything else. Linear time."""
    return _depth(_brackets(raw))


def _brackets(raw: bytes) -> bytes:
    """Those that stand outside of strings."""
    unescaped = raw.replace(b"\\\\", b"").replace(b'\\"', b"")
    return b"".join(unescaped.translate(None, _NOT_BRACKETS).split(b'"')[::2])


def _depth(brackets: bytes) -> int:
    return max(accumulate(memoryview(brackets.translate(_STEPS)).cast("b"), initial=0))


def check_depth(raw: bytes, limits: BodyLimits) -> None:
    """Raises RequestError, reason `body_too_deep`; `body_too_large` for more values than an event loop has time to parse for one request."""
    strings = raw.count(b'"') // 2
    if strings > MAX_STRINGS:
        raise _too_many(strings, "strings", MAX_STRINGS)
    if raw.count(b"{") + raw.count(b"[") <= limits.max_depth:
        return
    brackets = _brackets(raw)
    containers = brackets.count(b"{") + brackets.count(b"[")
    if containers > MAX_CONTAINERS:
        raise _too_many(containers, "objects and lists", MAX_CONTAINERS)
    if (depth := _depth(brackets)) > limits.max_depth:
        raise RequestError(
            f"The body nests {depth} objects and lists, the limit is {limits.max_depth}",
            reason="body_too_deep",
            fix="Flatten it.",
        )


def _too_many(found: int, what: str, most: int) -> RequestError:
    return RequestError(f"The body has {found} {what}, the most is {most}", reason="body_too_large", fix="Send less at once.")
