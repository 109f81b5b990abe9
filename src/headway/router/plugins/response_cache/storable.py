"""Which answers may be given again."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any


class Storable(Enum):
    NEVER = "never"
    TO_THE_SAME = "to the same request"
    BY_SIMILARITY = "to similar requests too"


def judged(body: Mapping[str, Any]) -> Storable:
    """Only answers whose every choice ended by itself: not those cut at a limit, filtered, empty, or without a reason for their end. One that calls
    tools is given to the same request only: its arguments belong to that request's words."""
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices or "error" in body:
        return Storable.NEVER
    best = Storable.BY_SIMILARITY
    for choice in choices:
        message = choice.get("message") or {}
        calls = message.get("tool_calls") or message.get("function_call")
        if choice.get("finish_reason") not in ("stop", "tool_calls", "function_call") or not (message.get("content") or message.get("refusal") or calls):
            return Storable.NEVER
        if calls:
            best = Storable.TO_THE_SAME
    return best
