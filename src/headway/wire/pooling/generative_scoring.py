"""`POST /generative_scoring`: how likely some tokens are to follow a query with each of some items."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from headway.wire.fields import TokenId
from headway.wire.pooling.reading_body import ReadingBody, ReadingUsage
from headway.wire.rerank import MAX_DOCUMENTS

MAX_LABELS = 1024
Part = str | list[TokenId]


class GenerativeScoringBody(ReadingBody):
    """The prompt of an item is `query` and the item, or with `item_first` the item and `query`. The score is the probability of
    the first of `label_token_ids`: among those tokens (`apply_softmax`), or in the whole vocabulary."""

    query: Part
    items: Annotated[list[Part], Field(min_length=1, max_length=MAX_DOCUMENTS)]
    label_token_ids: Annotated[list[TokenId], Field(min_length=1, max_length=MAX_LABELS)]
    apply_softmax: bool = True
    item_first: bool = False


class GenerativeScore(TypedDict):
    index: int
    object: Literal["score"]
    score: float


class GenerativeScoringAnswer(TypedDict):
    id: str
    object: Literal["list"]
    created: int
    model: str
    data: list[GenerativeScore]
    usage: ReadingUsage
