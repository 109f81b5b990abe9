"""A chat completion as a response."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from headway.router.listener.usage import token_count
from headway.router.protocols.deltas import Delta, read_message
from headway.router.protocols.responses.items import Item

_ECHOED: Mapping[str, Any] = {
    "instructions": None, "max_output_tokens": None, "max_tool_calls": None, "parallel_tool_calls": True, "previous_response_id": None,
    "service_tier": "default", "temperature": 1.0, "tool_choice": "auto", "tools": [], "top_logprobs": 0, "top_p": 1.0, "truncation": "disabled", "user": None,
}  # fmt: skip
_INCOMPLETE: Mapping[str, str] = {"length": "max_output_tokens", "content_filter": "content_filter"}


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


def finished(response: dict[str, Any], output: Sequence[Item], finish: str | None, completion: Mapping[str, Any]) -> dict[str, Any]:
    why = _INCOMPLETE.get(finish or "")
    return {
        **response,
        "status": "incomplete" if why else "completed",
        "incomplete_details": {"reason": why} if why else None,
        "model": completion.get("model") or response["model"],
        "output": list(output),
        "usage": usage_of_response(completion.get("usage")),
    }


def whole_response(response: dict[str, Any], completion: Mapping[str, Any]) -> dict[str, Any]:
    said = read_message(completion)
    return finished(response, output_items(said), said.finish, completion)


def output_items(said: Delta) -> list[Item]:
    found: list[Item] = []
    if said.reasoning:
        found.append(reasoning_item(new_id("rs"), said.reasoning))
    if said.text or said.refusal or not said.calls:
        status = "incomplete" if said.finish in _INCOMPLETE else "completed"
        found.append(message_item(new_id("msg"), content_parts(said), status))
    found += [call_item(new_id("fc"), call.id, call.name, call.arguments) for call in said.calls]
    return found


def content_parts(said: Delta) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    if said.text or not said.refusal:
        parts.append(text_part(said.text, said.logprobs))
    if said.refusal:
        parts.append(refusal_part(said.refusal))
    return parts


def text_part(text: str, logprobs: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": [dict(entry) for entry in logprobs]}


def refusal_part(refusal: str) -> dict[str, Any]:
    return {"type": "refusal", "refusal": refusal}


def message_item(name: str, content: Sequence[dict[str, Any]], status: str) -> Item:
    return {"id": name, "type": "message", "status": status, "role": "assistant", "content": list(content)}


def reasoning_item(name: str, text: str) -> Item:
    return {"id": name, "type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": text}] if text else []}


def call_item(name: str, call: str, function: str, arguments: str, status: str = "completed") -> Item:
    return {"id": name, "type": "function_call", "status": status, "call_id": call or new_id("call"), "name": function, "arguments": arguments}


def new_id(prefix: str) -> str:
    return f"{prefix}_{uuid.uuid4().hex}"


def usage_of_response(usage: Any) -> dict[str, Any] | None:
    if not isinstance(usage, Mapping):
        return None
    prompt, completion = _count(usage, "prompt_tokens"), _count(usage, "completion_tokens")
    return {
        "input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": _count(usage.get("prompt_tokens_details"), "cached_tokens")},
        "output_tokens": completion,
        "output_tokens_details": {"reasoning_tokens": _count(usage.get("completion_tokens_details"), "reasoning_tokens")},
        "total_tokens": prompt + completion,
    }


def _count(counts: Any, name: str) -> int:
    return token_count(counts.get(name)) if isinstance(counts, Mapping) else 0
