"""A Responses request as chat completions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headway.errors import NotBuiltError, RequestError
from headway.router.protocols.chat import check_stream, require_model
from headway.router.protocols.translation import Losses
from headway.wire.responses.chat_fields import text_fields, tool_fields
from headway.wire.responses.input import chat_messages
from headway.wire.responses.items import Item

_SAME = ("temperature", "top_p", "stream", "parallel_tool_calls", "user", "service_tier", "prompt_cache_key", "safety_identifier", "metadata")
_REFUSED: Mapping[str, str] = {
    "background": "Wait for the answer, or stream it.",
    "conversation": "Chain answers with previous_response_id.",
    "prompt": "Send the prompt's text as instructions and input.",
    "context_management": "Shorten the conversation yourself.",
}
_READ = frozenset({
    "model", "input", "instructions", "previous_response_id", "store", "tools", "tool_choice", "max_output_tokens", "text", "reasoning", "truncation",
    "include", "top_logprobs", "stream_options", *_SAME, *_REFUSED,
})  # fmt: skip
LOGPROBS = "message.output_text.logprobs"


def check_request(body: Mapping[str, Any]) -> None:
    """Raises RequestError, NotBuiltError."""
    require_model(dict(body))
    check_stream({"stream": body.get("stream")})
    for name, fix in _REFUSED.items():
        if body.get(name):
            raise NotBuiltError(f"{name} is not supported by the router", param=name, fix=fix)
    for name, kind in (("instructions", str), ("previous_response_id", str), ("store", bool), ("metadata", dict), ("text", dict), ("reasoning", dict)):
        if body.get(name) is not None and not isinstance(body[name], kind):
            raise RequestError(f"{name} must be a {kind.__name__}", param=name)
    limit = body.get("max_output_tokens")
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 1):
        raise RequestError("max_output_tokens must be a whole number of at least 1", param="max_output_tokens")


def chat_body(body: Mapping[str, Any], history: Sequence[Item], items: Sequence[Item], losses: Losses) -> dict[str, Any]:
    """`history` are the items of the answers that this one follows; their instructions do not carry over. Raises RequestError."""
    chat: dict[str, Any] = {"model": body["model"]}
    instructions = body.get("instructions")
    chat["messages"] = [*([{"role": "system", "content": instructions}] if instructions else []), *chat_messages([*history, *items], losses)]
    if not chat["messages"]:
        raise RequestError("input must hold at least one item", param="input")
    chat.update({name: body[name] for name in _SAME if body.get(name) is not None})
    if body.get("max_output_tokens") is not None:
        chat["max_tokens"] = body["max_output_tokens"]
    chat.update(tool_fields(body))
    chat.update(text_fields(body.get("text") or {}))
    reasoning = body.get("reasoning") or {}
    if reasoning.get("effort") is not None:
        chat["reasoning_effort"] = reasoning["effort"]
    if reasoning.get("summary") is not None:
        losses.note("reasoning.summary", severity="info")
    if body.get("truncation") == "auto":
        losses.note("truncation")
    _include(body, chat, losses)
    for name in body:
        if name not in _READ:
            losses.note(str(name))
    return chat


def _include(body: Mapping[str, Any], chat: dict[str, Any], losses: Losses) -> None:
    for name in body.get("include") or ():
        if name == LOGPROBS:
            chat["logprobs"] = True
        else:
            losses.note(f"include.{name}")
    if body.get("top_logprobs") is not None:
        chat["logprobs"], chat["top_logprobs"] = True, body["top_logprobs"]
