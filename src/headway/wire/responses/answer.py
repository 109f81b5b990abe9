"""The response object: in progress, finished, failed; its output items from an answer as a whole."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from headway.wire.answer_delta import Delta
from headway.wire.responses.items import Item, call_item, message_item, new_id, reasoning_item, refusal_part, text_part

_ECHOED: Mapping[str, Any] = {
    "instructions": None, "max_output_tokens": None, "max_tool_calls": None, "parallel_tool_calls": True, "previous_response_id": None,
    "service_tier": "default", "temperature": 1.0, "tool_choice": "auto", "tools": [], "top_logprobs": 0, "top_p": 1.0, "truncation": "disabled", "user": None,
}  # fmt: skip
INCOMPLETE: Mapping[str, str] = {"length": "max_output_tokens", "content_filter": "content_filter"}


def new_response(request: Mapping[str, Any]) -> dict[str, Any]:
    """What is known before the answer: an object in progress that says again what was asked for."""
    reasoning, text = request.get("reasoning") or {}, request.get("text") or {}
    return {
        "id": new_id("resp"),
        "object": "response",
        "created_at": int(time.time()),
        "status": "in_progress",
        "background": False,
        "error": None,
        "incomplete_details": None,
        "model": request["model"],
        "output": [],
        "usage": None,
        **{name: otherwise if request.get(name) is None else request[name] for name, otherwise in _ECHOED.items()},
        "reasoning": {"effort": reasoning.get("effort"), "summary": reasoning.get("summary")},
        "text": {"format": {"type": "text"}, **text},
        "store": request.get("store") is not False,
        "metadata": request.get("metadata") or {},
    }


def finished(response: Mapping[str, Any], output: Sequence[Item], finish: str | None, usage: Mapping[str, Any] | None) -> dict[str, Any]:
    """`finish` is the finish_reason of chat completions."""
    why = INCOMPLETE.get(finish or "")
    return {
        **response,
        "status": "incomplete" if why else "completed",
        "incomplete_details": {"reason": why} if why else None,
        "output": list(output),
        "usage": usage,
    }


def failed(response: Mapping[str, Any], output: Sequence[Item], message: str) -> dict[str, Any]:
    """What was said before the failure stays."""
    return {**response, "status": "failed", "error": {"code": "server_error", "message": message}, "output": list(output)}


def output_items(said: Delta) -> list[Item]:
    """Of an answer in one piece."""
    found: list[Item] = []
    if said.reasoning:
        found.append(reasoning_item(new_id("rs"), said.reasoning))
    if said.text or said.refusal or (not found and not said.calls):
        status = "incomplete" if said.finish in INCOMPLETE else "completed"
        found.append(message_item(new_id("msg"), _content_parts(said), status))
    found += [call_item(new_id("fc"), call.id, call.name, call.arguments) for call in said.calls]
    return found


def response_usage(prompt: int, completion: int, cached: int, reasoning: int) -> dict[str, Any]:
    """Counts of tokens; `cached` are part of `prompt`, `reasoning` of `completion`."""
    return {
        "input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": 0},
        "output_tokens": completion,
        "output_tokens_details": {"reasoning_tokens": reasoning},
        "total_tokens": prompt + completion,
    }


def _content_parts(said: Delta) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    if said.text or not said.refusal:
        parts.append(text_part(said.text, said.logprobs))
    if said.refusal:
        parts.append(refusal_part(said.refusal))
    return parts
