"""`POST /v2/embed`: embeddings as Cohere clients ask for them."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from headway.wire.classify import MAX_INPUTS
from headway.wire.fields import Body, FromOne
from headway.wire.not_built import NotBuiltField

NOT_BUILT = (NotBuiltField("images", "images, audio and video"),)
_SOME = Field(min_length=1, max_length=MAX_INPUTS)


class TextPart(Body):
    type: Literal["text"]
    text: str


class CohereInput(Body):
    content: Annotated[list[TextPart], Field(min_length=1)]


class CohereEmbedBody(Body):
    """Either `texts` or `inputs`. `truncate`: which end of a text that is too long is left off; NONE = it is refused."""

    model: str | None = None
    input_type: str | None = None  # a model without prompts by type reads all alike
    texts: Annotated[list[str], _SOME] | None = None
    inputs: Annotated[list[CohereInput], _SOME] | None = None
    embedding_types: Annotated[list[Literal["float", "base64"]], Field(min_length=1)] = Field(default=["float"])
    output_dimension: FromOne | None = None
    max_tokens: FromOne | None = None
    truncate: Literal["NONE", "START", "END"] = "END"

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (self.texts is None) == (self.inputs is None):
            raise PydanticCustomError("texts", "exactly one of texts and inputs must be given")
        return self

    @property
    def read(self) -> list[str]:
        """One text for each vector."""
        return self.texts or ["\n".join(part.text for part in each.content) for each in self.inputs or []]


CohereEmbeddings = dict[Literal["float", "base64"], list[Any]]


class CohereEmbedAnswer(TypedDict):
    id: str
    embeddings: CohereEmbeddings
    texts: list[str]
    meta: dict[str, Any]
    response_type: Literal["embeddings_by_type"]
