"""Changing the tools of a chat completions body, so that what speaks of them stays right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def name_of(tool: Mapping[str, Any]) -> str:
    inner = tool.get(str(tool.get("type") or "function"))
    found = (inner if isinstance(inner, Mapping) else tool).get("name")
    return found if isinstance(found, str) else ""


def description_of(tool: Mapping[str, Any]) -> str:
    """Name (as words), description and the names and descriptions of parameters: what a tool is found by."""
    function = tool.get("function")
    inner: Mapping[str, Any] = function if isinstance(function, Mapping) else tool
    parameters = inner.get("parameters")
    properties = parameters.get("properties") if isinstance(parameters, Mapping) else None
    told = [name_of(tool).replace("_", " ").replace(".", " "), str(inner.get("description") or "")]
    for name, schema in (properties if isinstance(properties, Mapping) else {}).items():
        told += [str(name).replace("_", " "), str(schema.get("description") or "") if isinstance(schema, Mapping) else ""]
    return " ".join(filter(None, told))


def with_tools(body: Mapping[str, Any], tools: Sequence[Any]) -> dict[str, Any]:
    """A choice of a tool that is gone becomes `auto`, since a backend would refuse it."""
    if not tools:
        return without_tools(body)
    changed = {**body, "tools": list(tools)}
    chosen = body.get("tool_choice")
    if isinstance(chosen, Mapping) and name_of(chosen) not in {name_of(tool) for tool in tools if isinstance(tool, Mapping)}:
        changed["tool_choice"] = "auto"
    return changed


def without_tools(body: Mapping[str, Any]) -> dict[str, Any]:
    gone = ("tools", "tool_choice", "parallel_tool_calls", "functions", "function_call")
    return {name: value for name, value in body.items() if name not in gone}


def without_tool_history(body: Mapping[str, Any]) -> dict[str, Any]:
    """Calls and their results leave the messages; an assistant's message stays if it says something too."""
    kept = []
    for message in body.get("messages") or ():
        if not isinstance(message, Mapping):
            kept.append(message)
        elif message.get("role") not in ("tool", "function"):
            rest = {name: value for name, value in message.items() if name not in ("tool_calls", "function_call")}
            if rest == message or rest.get("content"):
                kept.append(rest)
    return {**body, "messages": kept}
