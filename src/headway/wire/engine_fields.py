"""Fields of the engine that Responses and Messages take beside those of their API, named as for chats."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Annotated, Any, Final

from pydantic import Field

from headway.wire.fields import Body, Number, TokenBias, TokenId, Whole, told
from headway.wire.generation_body import CacheSalt
from headway.wire.not_built import NotBuiltField


class EngineFields(Body):
    """Ranges are checked where chats are."""

    temperature: Annotated[Number, told(minimum=0, maximum=2)] | None = None
    top_p: Annotated[Number, told(exclusiveMinimum=0, maximum=1)] | None = None
    top_k: Annotated[Whole, told(minimum=-1)] | None = None
    min_p: Annotated[Number, told(minimum=0, maximum=1)] | None = None
    repetition_penalty: Annotated[Number, told(exclusiveMinimum=0)] | None = None
    presence_penalty: Annotated[Number, told(minimum=-2, maximum=2)] | None = None
    frequency_penalty: Annotated[Number, told(minimum=-2, maximum=2)] | None = None
    seed: Whole | None = None
    logit_bias: TokenBias | None = None
    stop_token_ids: list[TokenId] | None = None
    ignore_eos: bool | None = None
    min_tokens: Annotated[Whole, told(minimum=0)] | None = None
    structured_outputs: dict[str, Any] | None = None
    chat_template_kwargs: dict[str, Any] = Field(default_factory=dict)
    priority: Whole | None = None
    request_id: str | None = None
    cache_salt: CacheSalt | None = None

    def engine_fields(self) -> dict[str, Any]:
        """Those that were given."""
        return self.model_dump(include=set(EngineFields.model_fields), exclude_unset=True)


# Fields of chats that would change the answer -> values that change nothing, and what to do instead.
_OF_CHATS: Final[dict[str, tuple[tuple[Any, ...], str]]] = {
    **{f"guided_{kind}": ((), "Use structured_outputs.") for kind in ("json", "regex", "choice", "grammar")},
    "response_format": (({"type": "text"},), "Use the form that this API has for it, or structured_outputs."),
    "reasoning_effort": ((), "Use the form that this API has for it."),
    "max_tokens": ((), "Use max_output_tokens."),
    "max_completion_tokens": ((), "Use the limit that this API has."),
    "stop": (([],), "Use stop_sequences."),
    "n": ((1,), "Send the request as often as answers are wanted."),
    **{
        name: (harmless, "Use /v1/chat/completions.")
        for name, harmless in {
            "use_beam_search": (False,), "allowed_token_ids": (), "bad_words": ([],), "vllm_xargs": ({},), "include_stop_str_in_output": (False,),
            "skip_special_tokens": (True,), "spaces_between_special_tokens": (True,), "thinking_token_budget": (-1,), "truncate_prompt_tokens": (),
            "prompt_logprobs": (), "logprobs": (False,), "logprob_token_ids": ([],), "echo": (False,), "add_special_tokens": (False,),
            "add_generation_prompt": (True,), "continue_final_message": (False,), "chat_template": (), "documents": ([],),
        }.items()
    },
}  # fmt: skip


def of_chats_alone(taken: Collection[str]) -> tuple[NotBuiltField, ...]:
    """Those that a body with the fields `taken` would ignore; they are refused."""

    def unchanging(values: tuple[Any, ...]) -> Callable[[Any, Any], bool]:
        return lambda value, _: value in values

    return tuple(NotBuiltField(name, f"{name} in this API", unchanging(values), fix) for name, (values, fix) in _OF_CHATS.items() if name not in taken)
