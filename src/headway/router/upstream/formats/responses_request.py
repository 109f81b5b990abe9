"""A chat completions body as a request to OpenAI's Responses API. Source: the public API reference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from headway.errors import RequestError
from headway.router.protocols.translation import Losses
from headway.router.upstream.formats.format import Body, parts_of_content, refuse, text_of_content, unknown_part

API = "OpenAI's Responses API"
LOGPROBS = "message.output_text.logprobs"
_SAME = ("model", "temperature", "top_p", "stream", "parallel_tool_calls", "user", "service_tier", "prompt_cache_key", "safety_identifier")
_REFUSED: Mapping[str, Any] = {
    "n": 1, "stop": [], "logit_bias": {}, "audio": None, "functions": [], "frequency_penalty": 0, "presence_penalty": 0,
}  # fmt: skip
_READ = frozenset(_SAME) | _REFUSED.keys() | {
    "messages", "max_tokens", "max_completion_tokens", "tools", "tool_choice", "response_format", "reasoning_effort", "verbosity",
    "logprobs", "top_logprobs", "stream_options", "function_call",
}  # fmt: skip


def responses_request(body: Body, losses: Losses) -> Body:
    """Nothing is stored there. Raises RequestError."""
    refuse(body, _REFUSED, API)
    for name in sorted(body.keys() - _READ):
        losses.note(name)
    found: Body = {name: body[name] for name in _SAME if body.get(name) is not None}
    found["store"] = False
    found["input"] = [item for message in body.get("messages") or () for item in _items(message)]
    most = body.get("max_completion_tokens") or body.get("max_tokens")
    if most:
        found["max_output_tokens"] = most
    if body.get("reasoning_effort"):
        found["reasoning"] = {"effort": body["reasoning_effort"]}
    if body.get("logprobs"):
        found["include"] = [LOGPROBS]
        found["top_logprobs"] = body.get("top_logprobs") or 0
    _add_tools(body, found)
    text = _text(body)
    return found | ({"text": text} if text else {})


def _items(message: Mapping[str, Any]) -> Iterator[Body]:
    role = message.get("role")
    if role == "tool":
        yield {"type": "function_call_output", "call_id": message.get("tool_call_id") or "", "output": text_of_content(message.get("content"))}
        return
    parts = [_part(part, str(role)) for part in parts_of_content(message.get("content"))]
    if parts:
        yield {"type": "message", "role": role, "content": parts}
    for call in message.get("tool_calls") or ():
        function = call["function"]
        yield {"type": "function_call", "call_id": call["id"], "name": function["name"], "arguments": function.get("arguments") or "{}"}


def _part(part: Mapping[str, Any], role: str) -> Body:
    kind = part.get("type")
    if kind == "text":
        return {"type": "output_text" if role == "assistant" else "input_text", "text": part["text"]}
    if kind == "refusal" and role == "assistant":
        return {"type": "refusal", "refusal": part["refusal"]}
    if kind == "image_url":
        given = part["image_url"]
        url, detail = (given["url"], given.get("detail")) if isinstance(given, Mapping) else (given, None)
        return {"type": "input_image", "image_url": url, "detail": detail or "auto"}
    raise unknown_part(kind, API)


def _add_tools(body: Mapping[str, Any], found: Body) -> None:
    functions = [tool["function"] for tool in body.get("tools") or () if isinstance(tool.get("function"), Mapping)]
    if functions:
        found["tools"] = [{"type": "function", "strict": False, **function} for function in functions]
    choice = body.get("tool_choice")
    if isinstance(choice, str):
        found["tool_choice"] = choice
    elif isinstance(choice, Mapping) and isinstance(choice.get("function"), Mapping):
        found["tool_choice"] = {"type": "function", "name": choice["function"]["name"]}


def _text(body: Mapping[str, Any]) -> Body:
    text: Body = {"verbosity": body["verbosity"]} if body.get("verbosity") else {}
    style = body.get("response_format")
    if isinstance(style, Mapping) and style.get("type") == "json_schema":
        given = style.get("json_schema")
        if not isinstance(given, Mapping):
            raise RequestError("response_format of type json_schema needs json_schema", param="response_format")
        text["format"] = {"type": "json_schema", **given}
    elif isinstance(style, Mapping) and style.get("type") == "json_object":
        text["format"] = {"type": "json_object"}
    return text
