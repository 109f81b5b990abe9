"""The request fields that all routes share on which prompts are read, and the usage that their answers tell."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import model_validator
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from headway.wire.fields import Body, FromMinusOne, Whole
from headway.wire.generation_body import CacheSalt


class ReadingBody(Body):
    model: str | None = None
    truncate_prompt_tokens: FromMinusOne | None = None
    truncation_side: Literal["left", "right"] = "right"
    add_special_tokens: bool = True
    priority: Whole = 0
    cache_salt: CacheSalt | None = None
    request_id: str | None = None
    user: str | None = None  # who asks: taken, and without effect

    @model_validator(mode="after")
    def _something_is_kept(self) -> Self:
        if self.truncate_prompt_tokens == 0:
            raise PydanticCustomError("truncate_prompt_tokens", "truncate_prompt_tokens must be -1 or at least 1, got 0")
        return self


class ReadingUsage(TypedDict):
    """Nothing is generated."""

    prompt_tokens: int
    total_tokens: int


def reading_usage(tokens: int) -> ReadingUsage:
    return {"prompt_tokens": tokens, "total_tokens": tokens}
