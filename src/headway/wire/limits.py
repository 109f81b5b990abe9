"""Limits on a body that are checked on its bytes, before any parser builds objects from it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from headway.errors import RequestError

MAX_SCAN_TOKENS: Final = 1 << 22  # of one input, over all windows: the most that a request may allow
_BRACKETS = b'{}[]"'
_NOT_BRACKETS = bytes(c for c in range(256) if c not in _BRACKETS)


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
    unescaped = raw.replace(b"\\\\", b"").replace(b'\\"', b"")
    outside = b"".join(unescaped.translate(None, _NOT_BRACKETS).split(b'"')[::2])
    return max(accumulate((1 if c in b"{[" else -1 for c in outside), initial=0))


def check_depth(raw: bytes, limits: BodyLimits) -> None:
    """Raises RequestError, reason `body_too_deep`."""
    if raw.count(b"{") + raw.count(b"[") > limits.max_depth and (depth := nesting_depth(raw)) > limits.max_depth:
        raise RequestError(
            f"The body nests {depth} objects and lists, the limit is {limits.max_depth}",
            reason="body_too_deep",
            fix="Flatten it.",
        )
