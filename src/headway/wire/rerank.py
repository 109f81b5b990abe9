"""The body of `POST /v1/rerank`, checked."""

from __future__ import annotations

from dataclasses import dataclass, field

from headway.wire.classify import CommonOptions


@dataclass(frozen=True, slots=True)
class RerankRequest:
    """A blank document is an `invalid_input` item, not an error of the request."""

    query: str
    documents: tuple[str, ...]
    top_n: int | None = None
    return_documents: bool = False
    layer: int | None = None
    dimensions: int | None = None
    options: CommonOptions = field(default_factory=CommonOptions)
