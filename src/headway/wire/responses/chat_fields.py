"""Fields of a Responses request as those of chat completions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headway.errors import NotBuiltError, RequestError
from headway.wire.tool_list import listed_tools


def tool_fields(body: Mapping[str, Any]) -> dict[str, Any]:
    """`tools` and `tool_choice`. Raises RequestError, NotBuiltError."""
    chat: dict[str, Any] = {}
    if tools := listed_tools(body):
        chat["tools"] = [_tool(tool, at) for at, tool in enumerate(tools)]
    choice = body.get("tool_choice")
    if isinstance(choice, str):
        chat["tool_choice"] = choice
    elif isinstance(choice, Mapping) and choice.get("type") == "function":
        chat["tool_choice"] = {"type": "function", "function": {"name": choice.get("name")}}
    elif choice is not None:
        raise NotBuiltError("tool_choice can be auto, none, required, or a function", param="tool_choice")
    return chat


def text_fields(text: Mapping[str, Any]) -> dict[str, Any]:
    """`response_format` and `verbosity` from the member `text`. Raises RequestError."""
    chat: dict[str, Any] = {}
    wanted = text.get("format")
    kind = wanted.get("type") if isinstance(wanted, Mapping) else None
    if isinstance(wanted, Mapping) and kind == "json_schema":
        schema = {key: wanted[key] for key in ("name", "schema", "strict", "description") if wanted.get(key) is not None}
        chat["response_format"] = {"type": "json_schema", "json_schema": schema}
    elif kind == "json_object":
        chat["response_format"] = {"type": "json_object"}
    elif kind not in (None, "text"):
        raise RequestError(f"text.format.type {str(kind)[:40]!r} is not known", param="text.format", fix="Use text, json_object or json_schema.")
    if text.get("verbosity") is not None:
        chat["verbosity"] = text["verbosity"]
    return chat


def _tool(tool: Mapping[str, Any], at: int) -> dict[str, Any]:
    if tool.get("type") != "function":
        raise NotBuiltError(f"tools[{at}] has the type {str(tool.get('type'))[:40]!r}: only functions that the client runs are supported", param=f"tools[{at}]")
    if not isinstance(tool.get("name"), str):
        raise RequestError(f"tools[{at}] must have a name", param=f"tools[{at}].name")
    return {"type": "function", "function": {key: tool[key] for key in ("name", "description", "parameters", "strict") if tool.get(key) is not None}}
