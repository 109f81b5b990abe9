"""The POST routes that answer one call each, as a table. Another surface is one more entry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from headway.runtime.http.call import Call, Endpoint, Fields
from headway.runtime.http.decision_endpoints import decision_endpoints
from headway.wire.checked import name_text
from headway.wire.classify import parse_classify
from headway.wire.embeddings import Media, parse_embeddings
from headway.wire.rerank import parse_rerank


def read_classify(fields: Fields) -> Call:
    request = parse_classify(fields)
    return Call("classify", request, name_text(fields, "model"), request.options)


def read_embeddings(fields: Fields) -> Call:
    request = parse_embeddings(fields)
    has_media = any(isinstance(given, Media) for given in request.inputs)
    return Call("embeddings", request, name_text(fields, "model"), request.options, is_slow_to_plan=has_media)


def read_rerank(fields: Fields) -> Call:
    request = parse_rerank(fields)
    return Call("rerank", request, name_text(fields, "model"), request.options)


_MEDIA_BODY: Final = 24 * 1024 * 1024  # one image of the largest size in base64, and what is around it

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint("/v1/classify", "classify", read_classify),
    Endpoint("/v1/embeddings", "embeddings", read_embeddings, max_bytes=_MEDIA_BODY),
    Endpoint("/v1/rerank", "rerank", read_rerank),
    *decision_endpoints(),
)

_BY_NAME: Final = {endpoint.name: endpoint for endpoint in ENDPOINTS}
BUNDLED: Mapping[str, Endpoint] = {
    "classify": _BY_NAME["classify"],
    "embeddings": _BY_NAME["embeddings"],
    "rerank": _BY_NAME["rerank"],
    "decisions": _BY_NAME["systemone"],
}
"""The surfaces that a task of `/v1/bundle` may name, and the routes whose bodies and models they take."""
