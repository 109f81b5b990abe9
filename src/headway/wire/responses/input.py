"""Items of Responses as messages of chat completions."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from headway.errors import NotBuiltError, RequestError
from headway.wire.losses import LossNotes
from headway.wire.responses.items import Item

MOST_ITEMS = 10_000
_ROLES = ("user", "assistant", "system", "developer")
_TEXTS = ("input_text", "output_text", "text")
_NEEDED: Mapping[str, str] = {
    **dict.fromkeys(_TEXTS, "text must be a string"), "input_image": "image_url must be a string",
    "input_audio": "input_audio must be an object", "input_file": "file_data must be a string",
}  # fmt: skip


def input_items(given: Any) -> list[Item]:
    """`input` as a list of items, each with an id. Raises RequestError."""
    if isinstance(given, str):
        given = [{"role": "user", "content": given}]
    if not isinstance(given, list):
        raise RequestError("input must be a string or a list of items", param="input")
    if len(given) > MOST_ITEMS:
        raise RequestError(f"input has {len(given)} items, the most is {MOST_ITEMS}", param="input")
    found: list[Item] = []
    for at, item in enumerate(given):
        if not isinstance(item, dict):
            raise RequestError(f"input[{at}] must be an object", param=f"input[{at}]")
        kind, name = item.get("type") or "message", item.get("id")
        if not isinstance(kind, str) or not isinstance(name, str | None):
            raise RequestError(f"type and id of input[{at}] must be strings", param=f"input[{at}]")
        content = item.get("content")
        if kind == "message" and isinstance(content, str):
            text = "output_text" if item.get("role") == "assistant" else "input_text"
            item = {**item, "content": [{"type": text, "text": content}]}
        found.append({**item, "type": kind, "id": name or f"{_PREFIXES.get(kind, 'item')}_{uuid.uuid4().hex}"})
    return found


_PREFIXES: Mapping[str, str] = {"message": "msg", "function_call": "fc", "function_call_output": "fco", "reasoning": "rs"}


def chat_messages(items: Sequence[Item], losses: LossNotes, origins: dict[str, str] | None = None, before: int = 0, earlier: int = 0) -> list[dict[str, Any]]:
    """Calls in a row become one assistant message, joined to the text before them. Raises RequestError naming the item.

    `origins` is given what the paths of the chat are called in the request, where `before` messages precede these.
    The first `earlier` items are those of answers before.
    """
    found: list[dict[str, Any]] = []
    origins = {} if origins is None else origins
    for at, item in enumerate(items):
        place, kind = f"input[{at - earlier}]" if at >= earlier else "previous_response_id", item.get("type")
        if kind == "message":
            origins[f"messages[{before + len(found)}]"] = place
            found.append(_message(item, place, losses))
        elif kind == "function_call":
            call = {"id": str(item.get("call_id")), "type": "function", "function": {"name": str(item.get("name")), "arguments": str(item.get("arguments") or "{}")}}
            if not found or found[-1]["role"] != "assistant":
                found.append({"role": "assistant", "content": None})
            calls = found[-1].setdefault("tool_calls", [])
            origins[f"messages[{before + len(found) - 1}].tool_calls[{len(calls)}].function"] = place
            calls.append(call)
        elif kind == "function_call_output":
            found.append({"role": "tool", "tool_call_id": str(item.get("call_id")), "content": _output(item, place, losses)})
        elif kind == "reasoning":
            losses.note("input.reasoning", severity="info")
        elif kind == "item_reference":
            raise NotBuiltError(f"{place}: item references are not supported", param=place, fix="Send the item, or previous_response_id.")
        else:
            raise RequestError(f"{place} has the type {str(kind)[:40]!r}, which cannot be passed to a chat model", param=place, reason="content_part_unsupported")
    return found


def _message(item: Item, place: str, losses: LossNotes) -> dict[str, Any]:
    role = item.get("role")
    if role not in _ROLES:
        raise RequestError(f"{place}.role must be one of {', '.join(_ROLES)}", param=f"{place}.role")
    parts = item.get("content")
    if not isinstance(parts, list):
        raise RequestError(f"{place}.content must be a string or a list of parts", param=f"{place}.content")
    made = [_part(part, f"{place}.content[{number}]", losses) for number, part in enumerate(parts)]
    if role == "assistant":
        return {"role": role, "content": "".join(part["text"] for part in made if part["type"] == "text")}
    only_text = len(made) == 1 and made[0]["type"] == "text"
    return {"role": "system" if role == "developer" else role, "content": made[0]["text"] if only_text else made}


def _part(part: Any, place: str, losses: LossNotes) -> dict[str, Any]:
    kind = part.get("type") if isinstance(part, Mapping) else None
    if kind in _TEXTS and isinstance(part.get("text"), str):
        return {"type": "text", "text": part["text"]}
    if kind == "refusal":
        return {"type": "text", "text": str(part.get("refusal") or "")}
    if kind == "input_image" and isinstance(part.get("image_url"), str):
        detail = {"detail": part["detail"]} if part.get("detail") else {}
        return {"type": "image_url", "image_url": {"url": part["image_url"], **detail}}
    if kind == "input_audio" and isinstance(part.get("input_audio"), Mapping):
        return {"type": "input_audio", "input_audio": dict(part["input_audio"])}
    if kind == "input_file" and isinstance(part.get("file_data"), str):
        return {"type": "file", "file": {"filename": str(part.get("filename") or "file"), "file_data": part["file_data"]}}
    if isinstance(part, Mapping) and part.get("file_id"):
        raise NotBuiltError(f"{place}: files that were uploaded are not supported", param=place, fix="Send the data itself.")
    if isinstance(kind, str) and kind in _NEEDED:
        raise RequestError(f"{place}.{_NEEDED[kind]}", param=f"{place}.{_NEEDED[kind].split()[0]}")
    raise RequestError(f"{place} has the type {str(kind)[:40]!r}, which cannot be passed to a chat model", param=place, reason="content_part_unsupported")


def _output(item: Item, place: str, losses: LossNotes) -> str:
    output = item.get("output")
    if isinstance(output, str):
        return output
    if not isinstance(output, list):
        raise RequestError(f"{place}.output must be a string or a list of parts", param=f"{place}.output")
    made = [_part(part, f"{place}.output[{number}]", losses) for number, part in enumerate(output)]
    if any(part["type"] != "text" for part in made):
        losses.note("function_call_output.output")
    return "\n".join(part["text"] for part in made if part["type"] == "text")
