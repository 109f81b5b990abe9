"""`POST /tokenize` and `POST /detokenize`: bodies and answers."""

from __future__ import annotations

from typing import Self

from pydantic import model_validator
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from headway.wire.chat import TemplateFields
from headway.wire.fields import Body, TokenId
from headway.wire.messages import Messages


class TokenizeBody(TemplateFields):
    """Either `prompt` or `messages`. Special tokens are added to a prompt, not to rendered messages, unless told."""

    model: str | None = None
    prompt: str | None = None
    messages: Messages | None = None
    add_special_tokens: bool | None = None
    return_token_strs: bool = False

    @model_validator(mode="after")
    def _text_or_talk(self) -> Self:
        if (self.prompt is None) == (self.messages is None):
            raise PydanticCustomError("prompt", "exactly one of prompt and messages must be given")
        return self


class DetokenizeBody(Body):
    model: str | None = None
    tokens: list[TokenId]


class TokenizeAnswer(TypedDict):
    count: int
    max_model_len: int
    tokens: list[int]
    token_strs: list[str] | None


class DetokenizeAnswer(TypedDict):
    prompt: str
