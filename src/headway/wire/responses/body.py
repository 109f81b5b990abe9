"""`POST /v1/responses`: the body, and what of the API is not built."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import Field, WithJsonSchema

from headway.wire.engine_fields import EngineFields, of_chats_alone
from headway.wire.fields import FromOne, Whole, told
from headway.wire.not_built import NotBuiltField

LOGPROBS: Final = "message.output_text.logprobs"
# What a request may ask to be included; all but LOGPROBS are parts of items that this server never makes.
_INCLUDABLE = Literal[
    "message.output_text.logprobs", "reasoning.encrypted_content", "message.input_image.image_url", "file_search_call.results",
    "web_search_call.results", "web_search_call.action.sources", "computer_call_output.output.image_url", "code_interpreter_call.outputs",
]  # fmt: skip
_ITEM = {"type": "object", "properties": {"type": {"type": "string"}, "role": {"type": "string"}}}
_INPUT = {"anyOf": [{"type": "string"}, {"type": "array", "minItems": 1, "items": _ITEM}]}
Metadata = Annotated[dict[Annotated[str, Field(max_length=64)], Annotated[str, Field(max_length=512)]], Field(max_length=16)]


class ResponsesBody(EngineFields):
    """What items hold is checked where they become messages, which names the item."""

    model: str | None = None
    input: Annotated[str | list[dict[str, Any]], WithJsonSchema(_INPUT)]
    instructions: str | None = None
    previous_response_id: str | None = None
    store: bool | None = None
    background: bool = False
    stream: bool = False
    max_output_tokens: FromOne | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    text: dict[str, Any] | None = None
    reasoning: dict[str, Any] | None = None
    include: list[_INCLUDABLE] | None = None
    top_logprobs: Annotated[Whole, Field(ge=0), told(maximum=20)] | None = None
    stop: Annotated[str, told(minLength=1)] | Annotated[list[Annotated[str, told(minLength=1)]], told(maxItems=4)] | None = None
    include_reasoning: bool | None = None
    truncation: Literal["auto", "disabled"] | None = None
    metadata: Metadata | None = None
    # taken, and without effect on the answer
    user: str | None = None
    service_tier: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    max_tool_calls: Whole | None = None  # counts tools that the server runs, and it runs none


def _only(known: Mapping[str, tuple[Any, ...]], value: Any) -> bool:
    """An object whose members are `known`: with any value where no values are given, else with one of those."""
    if not isinstance(value, Mapping):
        return True  # of a wrong type, which the body's own check says
    return all(member is None or (name in known and (not known[name] or member in known[name])) for name, member in value.items())


_TEXT: Final[Mapping[str, tuple[Any, ...]]] = {"format": (), "verbosity": ("medium",)}
_REASONING: Final[Mapping[str, tuple[Any, ...]]] = {
    "effort": (), "summary": (), "generate_summary": (), "mode": ("standard",), "context": ("auto",),
}  # fmt: skip
NOT_BUILT: Final = (
    NotBuiltField("conversation", "conversations that the server keeps", fix="Chain answers with previous_response_id."),
    NotBuiltField("prompt", "templates of prompts that the server keeps", fix="Send the text as instructions and input."),
    NotBuiltField("context_management", "compaction of contexts", fix="Shorten the input."),
    NotBuiltField("truncation", "dropping of input that is too long", lambda v, _: v != "auto", "Shorten the input."),
    NotBuiltField("background", "background answers that are streamed", lambda v, f: not f.get("stream"), "Ask for the answer with GET, or leave background out."),
    NotBuiltField("text", "control of an answer's verbosity", lambda v, _: _only(_TEXT, v), "Leave everything but format out."),
    NotBuiltField("reasoning", "other members of reasoning than effort and summary", lambda v, _: _only(_REASONING, v), "Leave them out."),
    NotBuiltField("moderation", "moderation"),
    NotBuiltField("stream_options", "obfuscation of streams", lambda v, _: _only({"include_obfuscation": (False,)}, v), "Leave it out."),
    NotBuiltField("background_options", "options of background answers"),
    NotBuiltField("prompt_cache_options", "options of the prefix cache, which is automatic"),
    NotBuiltField("previous_input_messages", "messages of an earlier answer", fix="Send them as input."),
    NotBuiltField("enable_response_messages", "raw messages in answers"),
    *of_chats_alone(ResponsesBody.model_fields),
)
