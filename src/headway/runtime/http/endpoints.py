"""The POST routes that answer one call each, as a table. Another surface is one more entry."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from headway.runtime.http.call import Call, Endpoint, Fields
from headway.runtime.http.decision_endpoints import decision_endpoints, read_system_one_call
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


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint("/v1/classify", "classify", read_classify),
    Endpoint("/v1/embeddings", "embeddings", read_embeddings),
    Endpoint("/v1/rerank", "rerank", read_rerank),
    *decision_endpoints(),
)

BUNDLED: Mapping[str, Callable[[Fields], Call]] = {
    "classify": read_classify,
    "embeddings": read_embeddings,
    "rerank": read_rerank,
    "decisions": read_system_one_call,
}
"""The surfaces that a task of `/v1/bundle` may name, and how their bodies are read."""
