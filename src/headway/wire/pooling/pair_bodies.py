"""Bodies that compare texts, and their answers: `POST /score` and `/rerank`, under all their paths."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from headway.wire.classify import MAX_INPUTS
from headway.wire.fields import Whole, told
from headway.wire.pooling.reading_body import ReadingBody, ReadingUsage
from headway.wire.rerank import MAX_DOCUMENTS

_FIRST, _SECOND = ("text_1", "queries", "data_1"), ("text_2", "documents", "data_2")


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


_SOME_TEXTS = Annotated[list[str], BeforeValidator(_as_list), Field(min_length=1, max_length=MAX_INPUTS)]
Texts = _SOME_TEXTS | None


class ScoreBody(ReadingBody):
    """One text against many, or pairs. Each side has three names, of which one is given."""

    text_1: Texts = None
    queries: Texts = None
    data_1: Texts = None
    text_2: Texts = None
    documents: Texts = None
    data_2: Texts = None

    @model_validator(mode="after")
    def _one_name_for_each_side(self) -> Self:
        for names in (_FIRST, _SECOND):
            if sum(getattr(self, name) is not None for name in names) != 1:
                raise PydanticCustomError(names[0], f"exactly one of {', '.join(names)} must be given")
        if len(self.first) not in (1, len(self.second)):
            raise PydanticCustomError("text_1", f"{len(self.first)} texts against {len(self.second)}: give one, or as many")
        return self

    @property
    def first(self) -> list[str]:
        return next((value for name in _FIRST if (value := getattr(self, name)) is not None), [])

    @property
    def second(self) -> list[str]:
        return next((value for name in _SECOND if (value := getattr(self, name)) is not None), [])


def _document_text(value: Any) -> Any:
    """A document is a text, or an object that holds one, as Cohere clients send it."""
    return value.get("text") if isinstance(value, dict) else value


Document = Annotated[str, BeforeValidator(_document_text, json_schema_input_type=str | dict[Literal["text"], str])]


class RerankBody(ReadingBody):
    """`top_n` 0 = all."""

    query: str
    documents: Annotated[list[Document], Field(min_length=1, max_length=MAX_DOCUMENTS)]
    top_n: Annotated[Whole, Field(ge=0), told(minimum=0)] = 0


class ScoreEntry(TypedDict):
    index: int
    object: Literal["score"]
    score: float


class ScoreAnswer(TypedDict):
    id: str
    object: Literal["list"]
    created: int
    model: str
    data: list[ScoreEntry]
    usage: ReadingUsage


class RerankDocument(TypedDict):
    text: str


class RerankEntry(TypedDict):
    index: int
    document: RerankDocument
    relevance_score: float


class RerankAnswer(TypedDict):
    """Best first."""

    id: str
    model: str
    results: list[RerankEntry]
    usage: ReadingUsage
