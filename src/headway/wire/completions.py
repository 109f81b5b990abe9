"""`POST /v1/completions`: the body and the answer."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import model_validator
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from headway.wire.fields import FromMinusOne, Whole
from headway.wire.generation_body import GenerationBody
from headway.wire.prompt_field import PromptField
from headway.wire.timings import RequestTimings
from headway.wire.usage import Usage


class CompletionBody(GenerationBody):
    prompt: PromptField
    max_tokens: Whole = 16
    logprobs: FromMinusOne | None = None
    echo: bool = False
    add_special_tokens: bool = True

    @model_validator(mode="after")
    def _no_tokens_only_with_echo(self) -> Self:
        if self.max_tokens == 0 and not self.echo:
            raise PydanticCustomError(
                "max_tokens", "max_tokens must be at least 1 (0 is allowed with echo=true), got 0"
            )
        return self


class CompletionLogprobs(TypedDict):
    """Parallel lists, one entry for each token. `text_offset` counts code points from the start of `text`."""

    text_offset: list[int]
    token_logprobs: list[float | None]
    tokens: list[str]
    top_logprobs: list[dict[str, float] | None]


class CompletionChoice(TypedDict):
    index: int
    text: str
    logprobs: CompletionLogprobs | None
    finish_reason: str | None
    stop_reason: int | str | None
    token_ids: list[int] | None
    prompt_logprobs: list[dict[str, Any] | None] | None
    prompt_token_ids: list[int] | None
    routed_experts: None


class CompletionAnswer(TypedDict):
    id: str
    object: Literal["text_completion"]
    created: int
    model: str
    choices: list[CompletionChoice]
    service_tier: str | None
    system_fingerprint: str | None
    usage: Usage
    kv_transfer_params: dict[str, Any] | None
    ec_transfer_params: None
    metrics: RequestTimings | None
