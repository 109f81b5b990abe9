"""Changing the instructions of a chat completions body, without touching the body that is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

ROLES = ("system", "developer")


def replaced(messages: Sequence[Mapping[str, Any]], text: str) -> list[Mapping[str, Any]]:
    """`text` instead of all instructions."""
    return [{"role": "system", "content": text}, *(message for message in messages if message.get("role") not in ROLES)]


def put_first(messages: Sequence[Mapping[str, Any]], text: str) -> list[Mapping[str, Any]]:
    """`text`, an empty line, then what the first instructions say; instructions of its own where there are none."""
    for at, message in enumerate(messages):
        if message.get("role") in ROLES:
            return [*messages[:at], {**message, "content": _joined(text, message.get("content"))}, *messages[at + 1 :]]
    return [{"role": "system", "content": text}, *messages]


def _joined(text: str, content: Any) -> Any:
    if isinstance(content, list):
        return [{"type": "text", "text": text}, *content]
    return f"{text}\n\n{content}" if content else text
