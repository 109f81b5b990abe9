"""What a loaded model says of itself on `/v1/models`: heads, exits, limits, precision."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Overflow: TypeAlias = Literal["reject", "truncate", "window"]
HeadKind: TypeAlias = Literal["sequence", "scores", "token"]


@dataclass(frozen=True, slots=True)
class WindowSpec:
    """`tokens` in a window, special tokens included; `overlap` content tokens are shared by neighbours."""

    tokens: int
    overlap: int


@dataclass(frozen=True, slots=True)
class HeadFacts:
    """One classification head. `inputs`: which of text, text_pair, grounded it takes."""

    name: str
    kind: HeadKind
    labels: tuple[str, ...]
    inputs: tuple[str, ...] = ("text",)
    default_threshold: float | None = None
    thresholds: tuple[float, ...] | None = None
    overflow: Overflow = "reject"
    window: WindowSpec | None = None
    reduction: Literal["max", "span_union"] | None = None
    operating_point_sha256: str | None = None


@dataclass(frozen=True, slots=True)
class EmbeddingFacts:
    """`dimensions` and `layers` that a request may choose; one entry each when there is no choice."""

    dimensions: tuple[int, ...]
    layers: tuple[int, ...]
    normalized: bool
    pooling: str
    modalities: tuple[str, ...] = ("text",)
    input_types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RerankExit:
    layer: int
    dimension: int


@dataclass(frozen=True, slots=True)
class RerankFacts:
    exits: tuple[RerankExit, ...]
    default: RerankExit


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """`limits` holds the keys of the card's `limits` that apply; `dtype` is that of the arithmetic ("float32", ...).

    `notes` are sentences that a user should read on the card ("low quality: ...").
    """

    parameters: int
    dtype: str
    limits: dict[str, int]
    heads: tuple[HeadFacts, ...] = ()
    embedding: EmbeddingFacts | None = None
    rerank: RerankFacts | None = None
    question_types: tuple[str, ...] = ()
    presets: tuple[str, ...] = ()
    modalities: tuple[str, ...] = ("text",)
    notes: tuple[str, ...] = ()
    extra: dict[str, Any] = field(default_factory=dict)
