"""`POST /v1/chat/completions`: the body and the answer."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from headway.wire.fields import Body, FromMinusOne, Whole
from headway.wire.generation_body import GenerationBody
from headway.wire.messages import Messages
from headway.wire.timings import RequestTimings
from headway.wire.tool_fields import ToolChoice, Tools
from headway.wire.usage import Usage


class TemplateFields(Body):
    """How messages become a prompt; also the fields of `/tokenize` for messages."""

    add_generation_prompt: bool | None = None
    continue_final_message: bool = False
    chat_template: str | None = None
    chat_template_kwargs: dict[str, Any] = Field(default_factory=dict)
    documents: list[dict[str, Any]] | None = None
    tools: Tools | None = None
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None

    @model_validator(mode="after")
    def _one_way_to_end_the_prompt(self) -> Self:
        if self.continue_final_message and self.add_generation_prompt:
            raise PydanticCustomError(
                "continue_final_message", "continue_final_message and add_generation_prompt cannot both be true"
            )
        return self

    @property
    def opens_answer(self) -> bool:
        """Whether the prompt ends with the header of the assistant's turn: the default unless a message is continued."""
        return not self.continue_final_message if self.add_generation_prompt is None else self.add_generation_prompt


class ChatBody(TemplateFields, GenerationBody):
    messages: Messages
    max_completion_tokens: Whole | None = None
    max_tokens: Whole | None = None
    logprobs: bool = False
    top_logprobs: FromMinusOne | None = None
    echo: bool = False
    add_special_tokens: bool = False
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool = True
    include_reasoning: bool = True

    @model_validator(mode="after")
    def _fields_of_chat_that_belong_together(self) -> Self:
        if self.top_logprobs is not None and not self.logprobs:
            raise PydanticCustomError("top_logprobs", "top_logprobs needs logprobs=true")
        if self.tool_choice not in (None, "none", "auto") and not self.tools:  # those two may stay without a call
            raise PydanticCustomError("tool_choice", "tool_choice needs tools")
        return self

    @property
    def wanted_tokens(self) -> int | None:
        """`max_tokens` is the old name of `max_completion_tokens`, which wins."""
        return self.max_tokens if self.max_completion_tokens is None else self.max_completion_tokens


class TopLogprob(TypedDict):
    token: str
    logprob: float
    bytes: list[int]


class TokenLogprob(TopLogprob):
    top_logprobs: list[TopLogprob]


class ChatLogprobs(TypedDict):
    content: list[TokenLogprob]


class CalledFunction(TypedDict):
    name: str
    arguments: str


class ToolCall(TypedDict):
    id: str
    type: Literal["function"]
    function: CalledFunction


class ChatMessage(TypedDict):
    role: str
    content: str | None
    refusal: None
    annotations: None
    audio: None
    function_call: None
    tool_calls: list[ToolCall]
    reasoning: str | None


class ChatChoice(TypedDict):
    index: int
    message: ChatMessage
    logprobs: ChatLogprobs | None
    finish_reason: str | None
    stop_reason: int | str | None
    token_ids: list[int] | None


class ChatAnswer(TypedDict):
    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[ChatChoice]
    service_tier: str | None
    system_fingerprint: str | None
    usage: Usage
    prompt_logprobs: list[dict[str, Any] | None] | None
    prompt_token_ids: list[int] | None
    prompt_text: str | None
    kv_transfer_params: dict[str, Any] | None
    ec_transfer_params: None
    metrics: RequestTimings | None
