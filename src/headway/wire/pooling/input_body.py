"""Bodies with one `input` or `messages`: `POST /v1/embeddings`, `/pooling` and `/classify`, and their answers."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import model_validator
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from headway.wire.chat import TemplateFields
from headway.wire.fields import FromOne
from headway.wire.messages import Messages
from headway.wire.pooling.reading_body import ReadingBody, ReadingUsage
from headway.wire.prompt_field import PromptField


class InputBody(ReadingBody, TemplateFields):
    """Either `input` (a text, token ids, or a list of either) or `messages`, which the chat template makes one text of.

    `use_activation`: vectors of unit length, classes as probabilities; null = as the server is configured.
    """

    input: PromptField | None = None
    messages: Messages | None = None
    use_activation: bool | None = None

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (self.input is None) == (self.messages is None):
            raise PydanticCustomError("input", "exactly one of input and messages must be given")
        return self

    @property
    def opens_answer(self) -> bool:
        """What is read is not answered, unless the caller says so."""
        return bool(self.add_generation_prompt)


class VectorBody(InputBody):
    """`dimensions`: the first so many numbers of a vector."""

    encoding_format: Literal["float", "base64"] = "float"
    embed_dtype: Literal["float32"] = "float32"
    endianness: Literal["native", "little"] = "native"
    dimensions: FromOne | None = None


class EmbeddingsBody(VectorBody):
    pass


class PoolingBody(VectorBody):
    task: Literal["embed", "token_embed", "classify"] | None = None


class ClassifyBody(InputBody):
    pass


class EmbeddingEntry(TypedDict):
    """`embedding`: numbers, or base64 of little-endian float32."""

    object: Literal["embedding"]
    index: int
    embedding: list[float] | str


class EmbeddingsAnswer(TypedDict):
    id: str
    object: Literal["list"]
    created: int
    model: str
    data: list[EmbeddingEntry]
    usage: ReadingUsage


class PoolingEntry(TypedDict):
    object: Literal["pooling"]
    index: int
    data: list[float] | list[list[float]] | str


class PoolingAnswer(TypedDict):
    id: str
    object: Literal["list"]
    created: int
    model: str
    data: list[PoolingEntry]
    usage: ReadingUsage


class ClassifyEntry(TypedDict):
    """`label` is that of the largest of `probs`."""

    index: int
    label: str
    probs: list[float]
    num_classes: int


class ClassifyAnswer(TypedDict):
    id: str
    object: Literal["list"]
    created: int
    model: str
    data: list[ClassifyEntry]
    usage: ReadingUsage

