"""The request fields that completions and chat completions share, with the defaults of the contract (1.5)."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from headway.wire.answer_form import AnswerForm
from headway.wire.fields import Body, FromMinusOne, FromOne, Number, TokenBias, TokenId, Whole, told

_Plain = str | Whole | Number | bool
ExtraArgument = _Plain | list[_Plain]
CacheSalt = Annotated[str, Field(min_length=1, max_length=1024)]


class StreamOptions(Body):
    include_usage: bool = False
    continuous_usage_stats: bool = False


class GenerationBody(AnswerForm):
    """Ranges of the sampling fields are checked by SamplingParams, token ids by the engine, so that both say it once."""

    model: str | None = None
    # sampling; None = the model's own default
    temperature: Annotated[Number, told(minimum=0, maximum=2)] | None = None
    top_p: Annotated[Number, told(exclusiveMinimum=0, maximum=1)] | None = None
    top_k: Annotated[Whole, told(minimum=-1)] | None = None
    min_p: Annotated[Number, told(minimum=0, maximum=1)] | None = None
    repetition_penalty: Annotated[Number, told(exclusiveMinimum=0)] | None = None
    presence_penalty: Annotated[Number, told(minimum=-2, maximum=2)] = 0.0
    frequency_penalty: Annotated[Number, told(minimum=-2, maximum=2)] = 0.0
    seed: Whole | None = None
    n: Annotated[Whole, told(minimum=1)] = 1
    use_beam_search: bool = False  # with n = width of the beam
    length_penalty: Number = 1.0
    logit_bias: TokenBias | None = None
    allowed_token_ids: list[TokenId] | None = None
    bad_words: list[Annotated[str, told(minLength=1)]] = Field(default_factory=list)
    vllm_xargs: dict[str, ExtraArgument] = Field(default_factory=dict)  # for logits processors
    # where it ends
    stop: (
        Annotated[str, told(minLength=1)] | Annotated[list[Annotated[str, told(minLength=1)]], told(maxItems=4)] | None
    ) = None
    stop_token_ids: list[TokenId] = Field(default_factory=list)
    include_stop_str_in_output: bool = False
    ignore_eos: bool = False
    min_tokens: Annotated[Whole, told(minimum=0)] = 0
    thinking_token_budget: FromMinusOne | None = None  # -1 = as many as the model likes
    # the prompt
    truncate_prompt_tokens: FromMinusOne | None = None
    truncation_side: Literal["left", "right"] = "left"
    prompt_logprobs: FromMinusOne | None = None
    logprob_token_ids: list[TokenId] = Field(default_factory=list)  # shown beside the alternatives that logprobs asks for
    # the answer
    stream: bool = False
    stream_options: StreamOptions | None = None
    stream_interval: FromOne | None = None
    skip_special_tokens: bool = True
    spaces_between_special_tokens: bool = True
    return_token_ids: bool = False
    return_tokens_as_token_ids: bool | None = None
    # handling
    priority: Whole = 0
    request_id: str | None = None
    cache_salt: CacheSalt | None = None
    kv_transfer_params: dict[str, Any] | None = None  # another engine has the blocks of the prompt, or shall have them
    user: str | None = None  # who asks, and in which session: taken, and without effect on the answer
    session_id: str | None = None

    @model_validator(mode="after")
    def _fields_that_belong_together(self) -> Self:
        if self.stream_options and self.stream_options.model_fields_set and not self.stream:
            raise PydanticCustomError("stream_options", "stream_options can only be given with stream=true")
        if self.stream and self.prompt_logprobs is not None:
            raise PydanticCustomError("prompt_logprobs", "prompt_logprobs cannot be given with stream=true")
        if self.truncate_prompt_tokens == 0:
            raise PydanticCustomError(
                "truncate_prompt_tokens", "truncate_prompt_tokens must be -1 or at least 1, got 0"
            )
        return self
