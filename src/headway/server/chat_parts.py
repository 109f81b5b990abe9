"""The parts of an answer in the shapes of chat completions: a message, or the delta of a chunk."""

from __future__ import annotations

from typing import Any

from headway.wire.answer_delta import CallPart, Delta
from headway.wire.chat import ToolCall


def delta_members(delta: Delta) -> dict[str, Any]:
    """What clients add up: texts are appended, pieces of calls belong to the call of their index. {} where nothing is new."""
    members: dict[str, Any] = {}
    if delta.reasoning:
        members["reasoning"] = delta.reasoning
    if delta.text:
        members["content"] = delta.text
    if delta.calls:
        members["tool_calls"] = [_piece(call) for call in delta.calls]
    return members


def _piece(call: CallPart) -> dict[str, Any]:
    """Id, type and name come once."""
    if not call.id:
        return {"index": call.index, "function": {"arguments": call.arguments}}
    return {"index": call.index, "id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def tool_calls(delta: Delta) -> list[ToolCall]:
    return [{"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}} for c in delta.calls]


def content(text: str, delta: Delta) -> str | None:
    """None where the answer has other parts and no text."""
    return text or (None if delta.calls or delta.reasoning else "")
