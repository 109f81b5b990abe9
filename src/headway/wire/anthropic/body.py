"""`POST /v1/messages` and `/v1/messages/count_tokens`: the bodies, and what of the API is not built."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import Field, WithJsonSchema

from headway.wire.engine_fields import EngineFields, of_chats_alone
from headway.wire.fields import Body, FromOne, told
from headway.wire.not_built import NotBuiltField

_BLOCKS = {"type": "array", "items": {"type": "object", "required": ["type"], "properties": {"type": {"type": "string"}}}}
_TEXT_OR_BLOCKS = {"anyOf": [{"type": "string"}, _BLOCKS]}
_MESSAGES = {
    "type": "array",
    "minItems": 1,
    "items": {
        "type": "object",
        "required": ["role", "content"],
        "properties": {"role": {"enum": ["user", "assistant"]}, "content": _TEXT_OR_BLOCKS},
    },
}


class CountTokensBody(EngineFields):
    """What makes the prompt. What blocks hold is checked where they become messages of a chat, which names the block."""

    model: str | None = None
    messages: Annotated[list[dict[str, Any]], Field(min_length=1), WithJsonSchema(_MESSAGES)]
    system: Annotated[str | list[dict[str, Any]] | None, WithJsonSchema(_TEXT_OR_BLOCKS)] = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: dict[str, Any] | None = None
    thinking: dict[str, Any] | None = None
    output_config: dict[str, Any] | None = None
    output_format: dict[str, Any] | None = None


class MessagesMetadata(Body):
    user_id: str | None = None


class MessagesBody(CountTokensBody):
    max_tokens: FromOne
    stop_sequences: Annotated[list[Annotated[str, told(minLength=1)]] | None, told(maxItems=4)] = None
    stream: bool = False
    metadata: MessagesMetadata | None = None
    service_tier: str | None = None  # taken, and without effect


NOT_BUILT: Final = (
    NotBuiltField("container", "containers"),
    NotBuiltField("mcp_servers", "tools that the server calls", fix="Call the tools yourself and send their results."),
    NotBuiltField("context_management", "editing of contexts", fix="Shorten the conversation yourself."),
    NotBuiltField("inference_geo", "choice of a place", lambda v, _: v == "global"),
    NotBuiltField("speed", "a fast mode", lambda v, _: v == "standard"),
    NotBuiltField("diagnostics", "diagnostics"),
    *of_chats_alone(MessagesBody.model_fields),
)
