"""Fields of a Messages request as those of chat completions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headway.errors import NotBuiltError, RequestError
from headway.wire.losses import LossNotes
from headway.wire.tool_list import listed_tools

_LOW_BUDGET, _MEDIUM_BUDGET = 4096, 16384  # tokens of thinking


def tool_fields(body: Mapping[str, Any]) -> dict[str, Any]:
    """`tools`, `tool_choice` and `parallel_tool_calls`. Raises RequestError, NotBuiltError."""
    chat: dict[str, Any] = {}
    if tools := listed_tools(body):
        chat["tools"] = [_tool(tool, at) for at, tool in enumerate(tools)]
    choice = body.get("tool_choice")
    if choice is None:
        return chat
    kind = choice.get("type") if isinstance(choice, Mapping) else None
    words = {"auto": "auto", "any": "required", "none": "none"}
    if isinstance(kind, str) and kind in words:
        chat["tool_choice"] = words[kind]
    elif kind == "tool" and isinstance(choice.get("name"), str):
        chat["tool_choice"] = {"type": "function", "function": {"name": choice["name"]}}
    else:
        raise RequestError("tool_choice must have the type auto, any, none, or tool with a name", param="tool_choice")
    if choice.get("disable_parallel_tool_use"):
        chat["parallel_tool_calls"] = False
    return chat


def thinking_fields(thinking: Any, losses: LossNotes) -> dict[str, Any]:
    """A budget of thinking becomes an effort."""
    if not isinstance(thinking, Mapping) or thinking.get("type") != "enabled":
        return {}
    budget = thinking.get("budget_tokens")
    if not isinstance(budget, int):
        return {}
    losses.note("thinking.budget_tokens", "approximated", "info")
    return {"reasoning_effort": "low" if budget < _LOW_BUDGET else "medium" if budget < _MEDIUM_BUDGET else "high"}


def output_fields(body: Mapping[str, Any]) -> dict[str, Any]:
    """`reasoning_effort` and `response_format` from `output_config` and from `output_format`, its older place."""
    chat: dict[str, Any] = {}
    config = body.get("output_config")
    config = config if isinstance(config, Mapping) else {}
    if isinstance(config.get("effort"), str):
        chat["reasoning_effort"] = config["effort"]
    wanted = config.get("format") or body.get("output_format")
    if isinstance(wanted, Mapping) and wanted.get("type") == "json_schema":
        chat["response_format"] = {"type": "json_schema", "json_schema": {"name": "output", "schema": wanted.get("schema"), "strict": True}}
    return chat


def _tool(tool: Mapping[str, Any], at: int) -> dict[str, Any]:
    if tool.get("type", "custom") != "custom":
        raise NotBuiltError(f"tools[{at}] has the type {str(tool['type'])[:40]!r}: only tools that the client runs are supported", param=f"tools[{at}]")
    if not isinstance(tool.get("name"), str):
        raise RequestError(f"tools[{at}] must have a name", param=f"tools[{at}].name")
    function = {"name": tool["name"], "description": tool.get("description"), "parameters": tool.get("input_schema"), "strict": tool.get("strict")}
    return {"type": "function", "function": {key: value for key, value in function.items() if value is not None}}
