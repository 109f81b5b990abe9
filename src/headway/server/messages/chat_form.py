"""A Messages request as a chat."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headway.errors import RequestError
from headway.server.refused_losses import RefusedLosses
from headway.wire import not_built
from headway.wire.anthropic.blocks import chat_messages, system_text
from headway.wire.anthropic.body import CountTokensBody, MessagesBody
from headway.wire.anthropic.chat_fields import output_fields, thinking_fields, tool_fields
from headway.wire.chat import ChatBody
from headway.wire.not_built import refuse_not_built
from headway.wire.parse import parse_body

# What errors call the fields that have other names in chats.
NAMES: Final = {
    "max_completion_tokens": "max_tokens", "stop": "stop_sequences", "response_format": "output_config.format", "reasoning_effort": "thinking",
    "thinking_token_budget": "thinking.budget_tokens",
    "response_format.json_schema": "output_config.format",
}  # fmt: skip
_THINKING: Final = ("enabled", "adaptive", "disabled")


def chat_form(body: CountTokensBody, has_thoughts: bool, names: dict[str, str]) -> ChatBody:
    """`has_thoughts`: the server tells the model's thoughts from its answers. Raises RequestError, NotBuiltError.

    `names` is given what errors call the parts of messages.
    """
    losses = RefusedLosses()
    system = system_text(body.system, losses)
    messages = [{"role": "system", "content": system}] if system else []
    origins: dict[str, str] = {}
    messages += chat_messages(body.messages, losses, origins, len(messages))
    names |= origins  # not before: errors of `chat_messages` name what was sent
    fields = body.model_dump(include={"tools", "tool_choice", "output_config", "output_format"}, exclude_unset=True)
    chat: dict[str, Any] = {"messages": messages, **body.engine_fields(), **tool_fields(fields), **output_fields(fields)}
    chat |= _thinking(body.thinking, chat.get("chat_template_kwargs") or {}, has_thoughts, losses)
    chat["continue_final_message"] = bool(messages) and _is_begun(messages[-1])
    if body.model is not None:
        chat["model"] = body.model
    if isinstance(body, MessagesBody):
        chat["max_completion_tokens"] = body.max_tokens
        chat["stream"] = body.stream
        if body.stop_sequences:
            chat["stop"] = body.stop_sequences
        if body.metadata is not None and body.metadata.user_id is not None:
            chat["user"] = body.metadata.user_id
    refuse_not_built(not_built.CHAT_ELSEWHERE, chat)
    return parse_body(ChatBody, chat)


def _is_begun(message: Mapping[str, Any]) -> bool:
    """A last message of the assistant is the beginning of the answer."""
    return message["role"] == "assistant" and bool(message["content"]) and not message.get("tool_calls")


def _thinking(
    thinking: Mapping[str, Any] | None, variables: Mapping[str, Any], has_thoughts: bool, losses: RefusedLosses
) -> dict[str, Any]:
    """Templates of models that may think or not read `enable_thinking`."""
    if thinking is None:
        return {}
    kind = thinking.get("type")
    if kind not in _THINKING:
        raise RequestError(f"thinking.type must be one of {', '.join(_THINKING)}", param="thinking.type")
    fields = {**thinking_fields(thinking, losses), "chat_template_kwargs": {"enable_thinking": kind != "disabled", **variables}}
    if kind == "enabled" and has_thoughts:
        fields["thinking_token_budget"] = thinking.get("budget_tokens")
    return fields
