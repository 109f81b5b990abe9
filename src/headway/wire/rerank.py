"""The body of `POST /v1/rerank`, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headway.errors import RequestError
from headway.wire import checked
from headway.wire.classify import COMMON_OPTIONS, CommonOptions, common_options, counted


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


MAX_DOCUMENTS = 1024
_FIELDS = frozenset({"model", "query", "documents", "top_n", "return_documents", "layer", "dimensions", "options"})


def parse_rerank(fields: Mapping[str, Any]) -> RerankRequest:
    """The checked body. Raises RequestError, reason `invalid_request`, for everything that can be seen without the model."""
    checked.only(fields, _FIELDS)
    options = checked.objects(fields, "options")
    checked.only(options, COMMON_OPTIONS | {"overflow"}, "options")
    if options.get("overflow") not in (None, "reject"):
        raise RequestError("options.overflow must be reject: pairs are never shortened", param="overflow")
    checked.required(fields, "query")
    documents = checked.required(fields, "documents")
    if not isinstance(documents, list):
        raise checked.wrong("documents", "a list of texts", documents)
    for index, document in enumerate(counted(documents, MAX_DOCUMENTS, "documents")):
        if not isinstance(document, str):
            raise checked.wrong(f"documents[{index}]", "text", document)
    layer, dimensions = checked.whole(fields, "layer", 1), checked.whole(fields, "dimensions", 1)
    if (layer is None) != (dimensions is None):
        raise RequestError("layer and dimensions name an exit together, one of them is missing", param="layer")
    return RerankRequest(
        query=checked.name_text(fields, "query") or "",
        documents=tuple(documents),
        top_n=checked.whole(fields, "top_n", 1),
        return_documents=checked.flag(fields, "return_documents"),
        layer=layer,
        dimensions=dimensions,
        options=common_options(options),
    )
