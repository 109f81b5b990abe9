"""Fields of the engine that Responses and Messages take beside those of their API, named as for chats."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from headway.wire.fields import Body, Number, TokenBias, TokenId, Whole, told
from headway.wire.generation_body import CacheSalt


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
    chat_template_kwargs: dict[str, Any] = Field(default_factory=dict)
    priority: Whole | None = None
    request_id: str | None = None
    cache_salt: CacheSalt | None = None

    def engine_fields(self) -> dict[str, Any]:
        """Those that were given."""
        return self.model_dump(include=set(EngineFields.model_fields), exclude_unset=True)
