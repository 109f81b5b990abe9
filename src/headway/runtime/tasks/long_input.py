"""How one classify request treats long input: the policy, its limits, and what of it is refused for the whole request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from headway.errors import RequestError
from headway.runtime.model_facts import HeadFacts, Overflow, WindowSpec
from headway.wire.classify import ClassifyRequest
from headway.wire.limits import MAX_SCAN_TOKENS

DEFAULT_SCAN: Final = 32_768  # tokens of a document that windows read when nobody says otherwise
DEFAULT_WINDOW: Final = 512


@dataclass(frozen=True, slots=True)
class LongInput:
    """`allowed`: tokens of one sequence. `window` is None unless the policy is window; `budget`: tokens of a text that all
    windows together may read. All with special tokens."""

    overflow: Overflow
    allowed: int
    window: WindowSpec | None
    budget: int


@dataclass(frozen=True, slots=True)
class HeadLimits:
    """`allowed` is what one sequence may have by default, `limit` the most that a request may ask for."""

    limit: int
    allowed: int
    scan: int
    special: int  # special tokens around one text


def default_window(limit: int, special: int) -> WindowSpec:
    """512 tokens, half of which neighbours share; less for models that cannot read 512."""
    tokens = min(DEFAULT_WINDOW, limit)
    return WindowSpec(tokens, (tokens - special) // 2)


def long_input(request: ClassifyRequest, head: HeadFacts, limits: HeadLimits, policies: Sequence[Overflow]) -> LongInput:
    """Raises RequestError for a policy that the head does not have, and for numbers that do not fit it."""
    overflow = request.overflow or head.overflow
    if overflow not in policies:
        raise _wrong("overflow", f"head {head.name} has the policies {', '.join(policies)}, found {overflow}")
    if overflow != "window":
        if request.window is not None:
            raise _wrong("window", f"window needs overflow: window, found overflow: {overflow}")
        allowed = _max_tokens(request, limits.allowed, limits.special + 1, limits.limit)
        return LongInput(overflow, allowed, None, allowed)
    window = _window(request, head, limits)
    budget = _max_tokens(request, limits.scan, 1, max(MAX_SCAN_TOKENS, limits.scan))
    if window.tokens > budget:
        raise _wrong("window", f"windows of {window.tokens} tokens are larger than max_tokens, which is {budget}")
    return LongInput(overflow, window.tokens, window, budget)


def _max_tokens(request: ClassifyRequest, default: int, least: int, most: int) -> int:
    if request.max_tokens is None:
        return default
    if not least <= request.max_tokens <= most:
        raise _wrong("max_tokens", f"max_tokens must be from {least} to {most} (special tokens count), found {request.max_tokens}")
    return request.max_tokens


def _window(request: ClassifyRequest, head: HeadFacts, limits: HeadLimits) -> WindowSpec:
    if request.window is None:
        if head.window is None:
            raise _wrong("window", f"head {head.name} has no window of its own: overflow: window needs window.tokens and window.overlap")
        return head.window
    asked = WindowSpec(request.window.tokens, request.window.overlap)
    if asked.tokens > limits.limit:
        raise _wrong("window", f"window.tokens is {asked.tokens}, the limit of one sequence is {limits.limit} (special tokens count)")
    width = asked.tokens - limits.special
    if width < 1:
        raise _wrong("window", f"window.tokens is {asked.tokens}, of which {limits.special} are special tokens: no room for text")
    if not 0 <= asked.overlap < width:
        raise _wrong("window", f"window.overlap must be from 0 to {width - 1}, less than the content of a window, found {asked.overlap}")
    return asked


def _wrong(name: str, message: str) -> RequestError:
    return RequestError(message, param=f"options.{name}")
