"""Chat messages as clients send them -> plain messages as chat templates read them (role, text content)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import orjson
from pydantic import Field, WithJsonSchema

from headway.errors import RequestError

ROLES = ("system", "developer", "user", "assistant", "tool", "function")
_TEXT_PARTS = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal"}
_MEDIA_PARTS = {
    "image_url": "images", "input_image": "images", "image_pil": "images", "image_embeds": "images", "image": "images",
    "audio_url": "audio", "input_audio": "audio", "video_url": "video", "video": "video", "file": "files", "input_file": "files",
}  # fmt: skip
_PASSED_ON = ("name", "tool_call_id", "reasoning", "reasoning_content")
PART_BORDER = "\n"  # as vLLM joins the text parts of one message
_SCHEMA = {
    "type": "array",
    "minItems": 1,
    "items": {
        "type": "object",
        "required": ["role"],
        "properties": {
            "role": {"enum": list(ROLES)},
            "content": {
                "anyOf": [
                    {"type": "string"},
                    {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["type", "text"],
                            "properties": {"type": {"enum": ["text"]}, "text": {"type": "string"}},
                        },
                    },
                    {"type": "null"},
                ]
            },
            "name": {"type": "string"},
            "tool_call_id": {"type": "string"},
            "reasoning": {"type": "string"},
            "tool_calls": {
                "type": "array",
                "items": {"type": "object", "required": ["function"], "properties": {"function": {"type": "object"}}},
            },
        },
    },
}
# What is in them is checked by `plain_messages`, which names the message and the part.
Messages = Annotated[list[dict[str, Any]], Field(min_length=1), WithJsonSchema(_SCHEMA)]


def plain_messages(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Messages whose `content` is one text each. Raises RequestError naming the message and the part by index."""
    return read_messages(messages, _content)


def read_messages(messages: Sequence[dict[str, Any]], content: Callable[[Any, str], Any]) -> list[dict[str, Any]]:
    """`content(what was sent, its place)` makes the contents. Raises RequestError as it does, and for everything else in a message."""
    return [_read(message, f"messages[{i}]", content) for i, message in enumerate(messages)]


def _read(message: dict[str, Any], where: str, content: Callable[[Any, str], Any]) -> dict[str, Any]:
    role = message.get("role")
    if role not in ROLES:
        shown = "is missing" if role is None else f"is {_short(role)}"
        raise RequestError(
            f"{where}.role {shown}, expected one of {', '.join(ROLES)}", param=f"{where}.role", reason="body_invalid"
        )
    out: dict[str, Any] = {"role": role, "content": content(message.get("content"), f"{where}.content")}
    for key in _PASSED_ON:
        if message.get(key) is not None:
            out[key] = _text(message[key], f"{where}.{key}")
    if message.get("tool_calls"):
        out["tool_calls"] = _tool_calls(message["tool_calls"], f"{where}.tool_calls")
    return out


def _content(content: Any, where: str) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    return PART_BORDER.join(text_part(part, f"{where}[{i}]") for i, part in enumerate(content_parts(content, where)))


def content_parts(content: Any, where: str) -> list[Any]:
    """Content that is no text. Raises RequestError unless it is a list."""
    if not isinstance(content, list):
        raise _wrong(where, content, "a text or a list of parts")
    return content


def text_part(part: Any, where: str) -> str:
    """The text of one part. Raises RequestError for parts of other kinds."""
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        raise _wrong(where, part, 'a part such as {"type": "text", "text": ...}')
    kind = part.get("type", "text" if "text" in part else None)
    if not isinstance(kind, str):
        raise _wrong(f"{where}.type", kind, "a text")
    if kind in _TEXT_PARTS:
        return _text(part.get(_TEXT_PARTS[kind]), f"{where}.{_TEXT_PARTS[kind]}")
    if kind in _MEDIA_PARTS:
        message = f"{where} cannot be read: this model takes text only, no {_MEDIA_PARTS[kind]}"
        raise RequestError(message, param=where, reason="content_part_unsupported")
    raise RequestError(f"{where}.type is {_short(kind)}, expected text", param=where, reason="content_part_unsupported")


def _tool_calls(calls: Any, where: str) -> list[dict[str, Any]]:
    """Earlier tool calls in the talk. Templates want the arguments as an object, clients send them as its JSON text."""
    if not isinstance(calls, list):
        raise _wrong(where, calls, 'a list of {"function": {...}} objects')
    for i, call in enumerate(calls):
        if not isinstance(call, dict):
            raise _wrong(f"{where}[{i}]", call, 'an object such as {"function": {...}}')
        if not isinstance(call.get("function"), dict):
            raise _wrong(f"{where}[{i}].function", call.get("function"), "an object with name and arguments")
    return [
        call | {"function": call["function"] | {"arguments": _arguments(call["function"], f"{where}[{i}]")}}
        for i, call in enumerate(calls)
    ]


def _arguments(function: dict[str, Any], where: str) -> dict[str, Any]:
    _text(function.get("name"), f"{where}.function.name")
    arguments = function.get("arguments") or {}
    if isinstance(arguments, str):
        try:
            arguments = orjson.loads(arguments) if arguments.strip() else {}
        except orjson.JSONDecodeError as e:
            where = f"{where}.function.arguments"
            raise RequestError(f"{where} is not JSON: {e}", param=where, reason="body_invalid") from e
    if not isinstance(arguments, dict):
        raise _wrong(f"{where}.function.arguments", arguments, "an object, or its JSON text")
    return arguments


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise _wrong(where, value, "a text")
    return value


def _wrong(where: str, value: Any, expected: str) -> RequestError:
    found = "is missing" if value is None else f"is of type {type(value).__name__}"
    return RequestError(f"{where} {found}, expected {expected}", param=where, reason="body_invalid")


def _short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 80 else shown[:77] + "..."
