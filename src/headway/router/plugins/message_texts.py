"""All texts of messages that people or tools wrote, and the messages with other texts in their place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import orjson

Change = Callable[[str], str]


def texts_of(messages: Sequence[Any]) -> Iterator[str]:
    """Contents, text parts, the strings in tool calls' arguments and in structured tool results. Not: names, identifiers, reasoning, media, keys of
    JSON objects."""
    seen: list[str] = []

    def note(text: str) -> str:
        seen.append(text)
        return text

    with_texts(messages, note)
    yield from seen


def with_texts(messages: Sequence[Any], change: Change) -> list[Any]:
    """New messages; those that are given stay as they are."""
    return [_message(message, change) if isinstance(message, Mapping) else message for message in messages]


def _message(message: Mapping[str, Any], change: Change) -> dict[str, Any]:
    changed = dict(message)
    structured = message.get("role") in ("tool", "function")
    if "content" in message:
        changed["content"] = _content(message["content"], change, structured)
    if isinstance(message.get("refusal"), str):
        changed["refusal"] = change(message["refusal"])
    if isinstance(message.get("tool_calls"), list):
        changed["tool_calls"] = [_call(call, change) if isinstance(call, Mapping) else call for call in message["tool_calls"]]
    if isinstance(message.get("function_call"), Mapping):
        changed["function_call"] = _function(message["function_call"], change)
    return changed


def _content(content: Any, change: Change, structured: bool) -> Any:
    if isinstance(content, str):
        return changed_json(content, change) if structured else change(content)
    if not isinstance(content, list):
        return content
    return [
        {**part, "text": changed_json(part["text"], change) if structured else change(part["text"])}
        if isinstance(part, Mapping) and isinstance(part.get("text"), str)
        else part
        for part in content
    ]


def _call(call: Mapping[str, Any], change: Change) -> dict[str, Any]:
    changed = dict(call)
    if isinstance(call.get("function"), Mapping):
        changed["function"] = _function(call["function"], change)
    custom = call.get("custom")
    if isinstance(custom, Mapping) and isinstance(custom.get("input"), str):
        changed["custom"] = {**custom, "input": change(custom["input"])}
    return changed


def _function(function: Mapping[str, Any], change: Change) -> dict[str, Any]:
    arguments = function.get("arguments")
    return {**function, "arguments": changed_json(arguments, change)} if isinstance(arguments, str) else dict(function)


def changed_json(text: str, change: Change) -> str:
    """Of one whole JSON object or array the strings are changed, and it stays JSON; anything else is changed as text."""
    if not text.lstrip().startswith(("{", "[")):
        return change(text)
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return change(text)
    leaves = _leaves(found, change)
    return text if leaves == found else orjson.dumps(leaves).decode()


def _leaves(value: Any, change: Change) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_leaves(item, change) for item in value]
    if isinstance(value, dict):
        return {key: _leaves(item, change) for key, item in value.items()}
    return value
