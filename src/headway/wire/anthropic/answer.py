"""The message object of an answer, and why it ended."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, Final

import orjson

from headway.wire.answer_delta import CallPart, Delta

_REASONS: Final = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "function_call": "tool_use", "content_filter": "refusal"}


def message_head(model: str) -> dict[str, Any]:
    return {"id": f"msg_{uuid.uuid4().hex}", "type": "message", "role": "assistant", "model": model}


def whole_message(head: Mapping[str, Any], said: Delta, usage: Mapping[str, int]) -> dict[str, Any]:
    """An answer in one piece."""
    content: list[dict[str, Any]] = []
    if said.reasoning:
        content.append({"type": "thinking", "thinking": said.reasoning, "signature": ""})
    if said.text or said.refusal:
        content.append({"type": "text", "text": said.text or said.refusal})
    content += [{"type": "tool_use", "id": call_id(call), "name": call.name, "input": _input(call.arguments)} for call in said.calls]
    reason, sequence = stop_of(said.finish, said.stop, bool(said.refusal), bool(said.calls))
    return {**head, "content": content, "stop_reason": reason, "stop_sequence": sequence, "usage": usage}


def call_id(call: CallPart) -> str:
    return call.id or f"toolu_{uuid.uuid4().hex}"


def stop_of(finish: str | None, stop: str | None, refused: bool, calls: bool) -> tuple[str, str | None]:
    """`stop_reason` and `stop_sequence`. A chat model may say `stop` after a call that was asked for by name."""
    if refused:
        return "refusal", None
    if finish == "stop" and calls:
        return "tool_use", None
    if finish == "stop" and stop is not None:
        return "stop_sequence", stop
    return _REASONS.get(finish or "stop", "end_turn"), None


def message_usage(prompt: int = 0, completion: int = 0, cached: int = 0, written: int = 0) -> dict[str, int]:
    """Anthropic counts what came from a cache, and what was written into it, beside the input, OpenAI inside the prompt."""
    return {
        "input_tokens": max(0, prompt - cached - written),
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": cached,
        "output_tokens": completion,
    }


def _input(arguments: str) -> Any:
    """Models may write arguments that are no JSON; the client still gets to see them."""
    if not arguments:
        return {}
    try:
        found = orjson.loads(arguments)
    except orjson.JSONDecodeError:
        return {"invalid_arguments": arguments}
    return found if isinstance(found, dict) else {"invalid_arguments": arguments}
