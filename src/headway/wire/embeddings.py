"""The body of `POST /v1/embeddings`, checked: OpenAI's fields and those of the model runtime."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from headway.wire.classify import CommonOptions, InvalidInput


@dataclass(frozen=True, slots=True)
class Text:
    text: str


@dataclass(frozen=True, slots=True)
class TokenIds:
    """Ids without special tokens, as OpenAI clients send them."""

    ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Media:
    """Decoded bytes of one image or sound."""

    modality: Literal["image", "audio"]
    data: bytes


EmbeddingInput: TypeAlias = Text | TokenIds | Media | InvalidInput


@dataclass(frozen=True, slots=True)
class EmbeddingsRequest:
    """`single`: the input was no list, so its failure is the failure of the call (400)."""

    inputs: tuple[EmbeddingInput, ...]
    single: bool = False
    dimensions: int | None = None
    layer: int | None = None
    input_type: str | None = None
    base64: bool = False
    overflow: Literal["reject", "truncate"] | None = None
    max_tokens: int | None = None
    options: CommonOptions = field(default_factory=CommonOptions)
