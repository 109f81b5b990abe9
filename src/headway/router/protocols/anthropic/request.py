"""A Messages request as chat completions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headway.errors import NotBuiltError, RequestError
from headway.router.protocols.anthropic.blocks import chat_messages, system_text
from headway.router.protocols.chat import check_stream, listed_tools, require_model
from headway.router.protocols.translation import Losses

_SAME = ("temperature", "top_p", "top_k", "stream", "service_tier")
_LOST = ("container", "context_management", "inference_geo", "cache_control", "speed")
_REFUSED = ("mcp_servers",)
_READ = frozenset({"model", "messages", "system", "max_tokens", "stop_sequences", "tools", "tool_choice", "metadata", "thinking", "output_config", "output_format", *_SAME})
_LOW_BUDGET, _MEDIUM_BUDGET = 4096, 16384  # tokens of thinking


def chat_body(body: Mapping[str, Any], losses: Losses) -> dict[str, Any]:
    """Raises RequestError for what is no Messages request, NotBuiltError for what a chat model cannot do."""
    require_model(dict(body))
    check_stream({"stream": body.get("stream")})
    for name in _REFUSED:
        if body.get(name):
            raise NotBuiltError(f"{name} is not supported by the router", param=name, fix="Call the tools yourself and send their results.")
    limit = body.get("max_tokens")
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
        raise RequestError("max_tokens is required, a whole number of at least 1", param="max_tokens")
    chat: dict[str, Any] = {"model": body["model"]}
    system = system_text(body.get("system"), losses)
    chat["messages"] = [*([{"role": "system", "content": system}] if system else []), *chat_messages(body.get("messages"), losses)]
    chat["max_tokens"] = limit
    chat.update({name: body[name] for name in _SAME if body.get(name) is not None})
    if chat.get("service_tier") == "standard_only":
        chat["service_tier"] = "default"
    if body.get("stop_sequences"):
        chat["stop"] = body["stop_sequences"]
    _tools(body, chat)
    _thinking(body.get("thinking"), chat, losses)
    _output(body, chat)
    metadata = body.get("metadata")
    if isinstance(metadata, Mapping) and isinstance(metadata.get("user_id"), str):
        chat["user"] = metadata["user_id"]
    for name in body:
        if name in _LOST or name not in _READ:
            losses.note(str(name))
    return chat


def _tools(body: Mapping[str, Any], chat: dict[str, Any]) -> None:
    if tools := listed_tools(body):
        chat["tools"] = [_tool(tool, at) for at, tool in enumerate(tools)]
    choice = body.get("tool_choice")
    if choice is None:
        return
    kind = choice.get("type") if isinstance(choice, Mapping) else None
    words = {"auto": "auto", "any": "required", "none": "none"}
    if kind in words:
        chat["tool_choice"] = words[str(kind)]
    elif kind == "tool" and isinstance(choice.get("name"), str):
        chat["tool_choice"] = {"type": "function", "function": {"name": choice["name"]}}
    else:
        raise RequestError("tool_choice must have the type auto, any, none, or tool with a name", param="tool_choice")
    if choice.get("disable_parallel_tool_use"):
        chat["parallel_tool_calls"] = False


def _tool(tool: Mapping[str, Any], at: int) -> dict[str, Any]:
    if tool.get("type", "custom") != "custom":
        raise NotBuiltError(f"tools[{at}] has the type {str(tool['type'])[:40]!r}: only tools that the client runs are supported", param=f"tools[{at}]")
    if not isinstance(tool.get("name"), str):
        raise RequestError(f"tools[{at}] must have a name", param=f"tools[{at}].name")
    function = {"name": tool["name"], "description": tool.get("description"), "parameters": tool.get("input_schema"), "strict": tool.get("strict")}
    return {"type": "function", "function": {key: value for key, value in function.items() if value is not None}}


def _thinking(thinking: Any, chat: dict[str, Any], losses: Losses) -> None:
    if not isinstance(thinking, Mapping) or thinking.get("type") != "enabled":
        return
    budget = thinking.get("budget_tokens")
    if isinstance(budget, int):
        chat["reasoning_effort"] = "low" if budget < _LOW_BUDGET else "medium" if budget < _MEDIUM_BUDGET else "high"
        losses.note("thinking.budget_tokens", "approximated", "info")


def _output(body: Mapping[str, Any], chat: dict[str, Any]) -> None:
    config = body.get("output_config")
    config = config if isinstance(config, Mapping) else {}
    if isinstance(config.get("effort"), str):
        chat["reasoning_effort"] = config["effort"]
    wanted = config.get("format") or body.get("output_format")
    if isinstance(wanted, Mapping) and wanted.get("type") == "json_schema":
        chat["response_format"] = {"type": "json_schema", "json_schema": {"name": "output", "schema": wanted.get("schema"), "strict": True}}
