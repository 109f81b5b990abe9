"""A Messages request as chat completions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headway.errors import NotBuiltError, RequestError
from headway.router.protocols.chat import check_stream, require_model
from headway.router.protocols.translation import Losses
from headway.wire.anthropic.blocks import chat_messages, system_text
from headway.wire.anthropic.chat_fields import output_fields, thinking_fields, tool_fields

_SAME = ("temperature", "top_p", "top_k", "stream", "service_tier")
_LOST = ("container", "context_management", "inference_geo", "cache_control", "speed")
_REFUSED = ("mcp_servers",)
_READ = frozenset({"model", "messages", "system", "max_tokens", "stop_sequences", "tools", "tool_choice", "metadata", "thinking", "output_config", "output_format", *_SAME})


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
    chat.update(tool_fields(body))
    chat.update(thinking_fields(body.get("thinking"), losses))
    chat.update(output_fields(body))
    metadata = body.get("metadata")
    if isinstance(metadata, Mapping) and isinstance(metadata.get("user_id"), str):
        chat["user"] = metadata["user_id"]
    for name in body:
        if name in _LOST or name not in _READ:
            losses.note(str(name))
    return chat
