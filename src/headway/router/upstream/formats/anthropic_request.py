"""A chat completions body as a request to Anthropic's Messages API. Source: the public API reference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from headway.errors import RequestError
from headway.router.protocols.translation import Losses
from headway.router.upstream.formats.format import Body, parts_of_content, refuse, text_of_content, unknown_part

API = "Anthropic's Messages API"
DEFAULT_MAX_TOKENS = 4096  # the API demands a number
_SAME = ("model", "temperature", "top_p", "top_k", "stream", "thinking")
_REFUSED: Mapping[str, Any] = {"n": 1, "logprobs": False, "logit_bias": {}, "audio": None, "functions": [], "frequency_penalty": 0, "presence_penalty": 0}
_CHOICES: Mapping[str, str] = {"auto": "auto", "required": "any", "none": "none"}
_READ = frozenset(_SAME) | _REFUSED.keys() | {
    "messages", "max_tokens", "max_completion_tokens", "stop", "tools", "tool_choice", "parallel_tool_calls", "user", "response_format",
    "reasoning_effort", "stream_options", "function_call",
}  # fmt: skip


def messages_request(body: Body, losses: Losses) -> Body:
    """Raises RequestError."""
    refuse(body, _REFUSED, API)
    for name in sorted(body.keys() - _READ):
        losses.note(name)
    system, messages = _conversation(body.get("messages") or [])
    found: Body = {name: body[name] for name in _SAME if body.get(name) is not None}
    found["max_tokens"] = body.get("max_completion_tokens") or body.get("max_tokens") or DEFAULT_MAX_TOKENS
    found["messages"] = messages
    if system:
        found["system"] = system
    stop = body.get("stop")
    if stop:
        found["stop_sequences"] = [stop] if isinstance(stop, str) else stop
    if isinstance(body.get("user"), str):
        found["metadata"] = {"user_id": body["user"]}
    _add_tools(body, found)
    output = _output_config(body)
    return found | ({"output_config": output} if output else {})


def _conversation(messages: list[Any]) -> tuple[str, list[Body]]:
    """Instructions joined in their order, and the turns: neighbours of one role become one turn."""
    system: list[str] = []
    turns: list[Body] = []
    for message in messages:
        role = message.get("role")
        if role in ("system", "developer"):
            system.append(text_of_content(message.get("content")))
            continue
        blocks = _result(message) if role == "tool" else _blocks(message)
        role = "assistant" if role == "assistant" else "user"
        if not blocks:
            continue
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        else:
            turns.append({"role": role, "content": blocks})
    return "\n\n".join(filter(None, system)), turns


def _blocks(message: Mapping[str, Any]) -> list[Body]:
    blocks = [_block(part) for part in parts_of_content(message.get("content"))]
    for call in message.get("tool_calls") or ():
        function = call["function"]
        blocks.append({"type": "tool_use", "id": call["id"], "name": function["name"], "input": _arguments(function.get("arguments"))})
    return [block for block in blocks if block.get("text") != ""]


def _block(part: Mapping[str, Any]) -> Body:
    kind = part.get("type")
    if kind == "text":
        return {"type": "text", "text": part["text"]}
    if kind == "refusal":
        return {"type": "text", "text": part["refusal"]}
    if kind == "image_url":
        given = part["image_url"]
        return {"type": "image", "source": _source(given["url"] if isinstance(given, Mapping) else given)}
    raise unknown_part(kind, API)


def _source(url: str) -> Body:
    if url.startswith("data:") and ";base64," in url:
        media, data = url.removeprefix("data:").split(";base64,", 1)
        return {"type": "base64", "media_type": media, "data": data}
    return {"type": "url", "url": url}


def _result(message: Mapping[str, Any]) -> list[Body]:
    content = message.get("content")
    told = content if isinstance(content, str) else [_block(part) for part in parts_of_content(content)]
    return [{"type": "tool_result", "tool_use_id": message.get("tool_call_id") or "", "content": told}]


def _arguments(text: Any) -> Any:
    if not text:
        return {}
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        raise RequestError("the arguments of a tool call in messages are no JSON", param="messages") from None
    return found if isinstance(found, dict) else {"value": found}


def _add_tools(body: Mapping[str, Any], found: Body) -> None:
    functions = [tool["function"] for tool in body.get("tools") or () if isinstance(tool.get("function"), Mapping)]
    if not functions:
        return
    found["tools"] = [_tool(function) for function in functions]
    choice = body.get("tool_choice")
    told: Body | None = None
    if isinstance(choice, str):
        told = {"type": _CHOICES.get(choice, "auto")}
    elif isinstance(choice, Mapping) and isinstance(choice.get("function"), Mapping):
        told = {"type": "tool", "name": choice["function"]["name"]}
    if body.get("parallel_tool_calls") is False and (told or {}).get("type") != "none":
        told = {**(told or {"type": "auto"}), "disable_parallel_tool_use": True}
    if told is not None:
        found["tool_choice"] = told


def _tool(function: Mapping[str, Any]) -> Body:
    told: Body = {"name": function["name"], "input_schema": function.get("parameters") or {"type": "object", "properties": {}}}
    if function.get("description"):
        told["description"] = function["description"]
    return told


def _output_config(body: Mapping[str, Any]) -> Body:
    output: Body = {}
    if body.get("reasoning_effort"):
        output["effort"] = body["reasoning_effort"]
    style = body.get("response_format")
    if isinstance(style, Mapping) and style.get("type") == "json_schema":
        output["format"] = {"type": "json_schema", "schema": style["json_schema"].get("schema") or {}}
    elif isinstance(style, Mapping) and style.get("type") == "json_object":
        raise RequestError(f"{API} has no response_format json_object", param="response_format", reason="not_built", fix="Use json_schema.")
    return output
