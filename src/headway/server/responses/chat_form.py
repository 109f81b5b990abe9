"""A Responses request as a chat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from headway.errors import RequestError
from headway.server.refused_losses import RefusedLosses
from headway.wire import not_built
from headway.wire.chat import ChatBody
from headway.wire.not_built import refuse_not_built
from headway.wire.parse import parse_body
from headway.wire.responses.body import LOGPROBS, ResponsesBody
from headway.wire.responses.chat_fields import text_fields, tool_fields
from headway.wire.responses.input import chat_messages
from headway.wire.responses.items import Item

# What errors call the fields that have other names in chats.
NAMES: Final = {
    "max_tokens": "max_output_tokens", "messages": "input", "response_format": "text.format", "response_format.json_schema": "text.format", "reasoning_effort": "reasoning.effort",
}  # fmt: skip
_SAME = ("model", "stream", "parallel_tool_calls", "user", "stop", "include_reasoning")


def chat_form(body: ResponsesBody, history: Sequence[Item], items: Sequence[Item], names: dict[str, str]) -> ChatBody:
    """`history`: the items of the answers before, `items`: those of this request. Raises RequestError, NotBuiltError.

    `names` is given what errors call the messages.
    """
    messages: list[dict[str, Any]] = [{"role": "system", "content": body.instructions}] if body.instructions else []
    origins: dict[str, str] = {}
    messages += chat_messages([*history, *items], RefusedLosses(), origins, len(messages), len(history))
    names |= origins
    if not messages:
        raise RequestError("input must hold at least one item", param="input")
    chat: dict[str, Any] = {"messages": messages, **body.engine_fields()}
    chat.update({name: value for name in _SAME if (value := getattr(body, name)) is not None})
    if body.max_output_tokens is not None:
        chat["max_completion_tokens"] = body.max_output_tokens

    chat |= tool_fields({"tools": body.tools, "tool_choice": body.tool_choice})
    chat |= text_fields({"format": (body.text or {}).get("format")})
    if (effort := (body.reasoning or {}).get("effort")) is not None:
        chat["reasoning_effort"] = effort
    if body.top_logprobs is not None or LOGPROBS in (body.include or ()):
        chat["logprobs"], chat["top_logprobs"] = True, body.top_logprobs or 0
    refuse_not_built(not_built.CHAT_ELSEWHERE, chat)
    return parse_body(ChatBody, chat)
