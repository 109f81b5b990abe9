"""`GET /openapi.yaml`: the description of all routes, made from one table and two files of schemas."""

from __future__ import annotations

from functools import cache
from http import HTTPStatus
from importlib.resources import files
from typing import Any, NamedTuple

import yaml

from headway.version import __version__

_JSON = "application/json"
_POST_ERRORS = (400, 401, 404, 408, 413, 415, 422, 429, 500, 503)
_SCHEMA_FILES = ("openapi_requests.yaml", "openapi_answers.yaml")


class _Operation(NamedTuple):
    """Names of schemas; `request` None: a GET. `answer` None: no JSON, but text of the media type."""

    summary: str
    request: str | None
    answer: str | None
    error: str = "Error"
    media: str = _JSON
    statuses: tuple[int, ...] = (401,)


_OPERATIONS: dict[str, _Operation] = {
    "/v1/decisions": _Operation("Questions about a state, in three forms", "DecisionsRequest", "SystemOneAnswer", "DecisionsError"),
    "/v1/systemone": _Operation("Questions about a state", "SystemOneRequest", "SystemOneAnswer", "DecisionsError"),
    "/v1/systemone/batch": _Operation("The same questions about many states", "SystemOneBatchRequest", "SystemOneBatchAnswer", "DecisionsError"),
    "/v1/classify": _Operation("Labels, scores or spans of texts", "ClassifyRequest", "ClassifyAnswer"),
    "/v1/embeddings": _Operation("Vectors of texts, images and sounds", "EmbeddingsRequest", "EmbeddingsAnswer"),
    "/v1/rerank": _Operation("Documents in the order of their relevance", "RerankRequest", "RerankAnswer"),
    "/v1/bundle": _Operation("Several calls in one", "BundleRequest", "BundleAnswer"),
    "/v1/models": _Operation("What is served, and its limits", None, "Models"),
    "/v1/systemone/models": _Operation("Models that answer questions", None, "DecisionModels"),
    "/health": _Operation("Whether every model is ready", None, "Health", "Health", statuses=(503,)),
    "/health/live": _Operation("Whether the process answers", None, "Live", statuses=()),
    "/metrics": _Operation("Prometheus metrics", None, None, media="text/plain", statuses=()),
    "/openapi.yaml": _Operation("This description", None, None, media="application/yaml"),
}


@cache
def openapi() -> dict[str, Any]:
    """OpenAPI 3.1."""
    schemas: dict[str, Any] = {}
    for name in _SCHEMA_FILES:
        schemas.update(yaml.safe_load(files("headway.runtime.http").joinpath(name).read_text("utf-8")))
    schemas.pop("CommonOptions")  # an anchor for the others
    paths = {path: {"get" if op.request is None else "post": _described(path, op)} for path, op in _OPERATIONS.items()}
    return {
        "openapi": "3.1.0",
        "info": {"title": "vllm-srun", "version": __version__},
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
        "security": [{}, {"key": []}],
    }


@cache
def openapi_yaml() -> bytes:
    return yaml.safe_dump(openapi(), sort_keys=False, allow_unicode=True, width=120).encode()


def _described(path: str, operation: _Operation) -> dict[str, Any]:
    answer = _reference(operation.answer) if operation.answer else {}
    responses: dict[str, Any] = {"200": {"description": "OK", "content": {operation.media: {"schema": answer}}}}
    for status in operation.statuses if operation.request is None else _POST_ERRORS:
        responses[str(status)] = {
            "description": HTTPStatus(status).phrase, "content": {_JSON: {"schema": _reference(operation.error)}},
        }  # fmt: skip
    found: dict[str, Any] = {"operationId": path.strip("/").replace("/", "_").replace(".", "_"), "summary": operation.summary}
    if operation.request is not None:
        found["requestBody"] = {"required": True, "content": {_JSON: {"schema": _reference(operation.request)}}}
    return {**found, "responses": responses}


def _reference(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}
