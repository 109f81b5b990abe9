"""The items of an answer of Responses and what they hold."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

Item: TypeAlias = dict[str, Any]


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
