"""The API description. Handlers read their bodies themselves, to check size and depth first, so bodies are added here."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import TypeAdapter
from pydantic.json_schema import JsonSchemaMode, JsonSchemaValue

from headway.server.route import Route
from headway.server.routes import OPEN_PATHS, ROUTES
from headway.wire.operations import HealthAnswer

_REF = "#/components/schemas/{model}"
_JSON, _EVENTS = "application/json", "text/event-stream"
_EVENT = {"type": "object", "required": ["data"], "properties": {"data": {"type": "string", "description": "JSON or [DONE]"}}}
_IN_PATH = re.compile(r"{(\w+)}")
_BODY_ERRORS = (400, 404, 408, 413)  # what may be wrong with a body, or with how it is sent
_ENGINE_ERRORS = (500, 503)

Schemas = dict[tuple[Any, JsonSchemaMode], JsonSchemaValue]


def openapi(app: FastAPI) -> dict[str, Any]:
    """OpenAPI 3.1 of `app`, made when the models that can be named have changed."""
    names = app.state.headway.model_names
    if app.openapi_schema is None or app.state.described_names != names:
        app.state.described_names = names
        schema = get_openapi(title=app.title, version=app.version, routes=app.routes)
        parts, definitions = _schemas()
        for route in ROUTES:
            for method in route.methods:
                operation = schema["paths"].get(route.path, {}).get(method.lower())
                if operation is not None:
                    _describe(operation, route, parts)
        for route in ROUTES:
            if route.body is not None and "model" in definitions[route.body.__name__].get("properties", {}):
                definitions[route.body.__name__]["properties"]["model"] = {"enum": [*names, None]}
        schema.setdefault("components", {})["schemas"] = definitions
        app.openapi_schema = schema
    return app.openapi_schema


def _describe(operation: dict[str, Any], route: Route, parts: Schemas) -> None:
    if route.body is not None:
        operation["requestBody"] = {"required": True, "content": {_JSON: {"schema": parts[(route.body, "validation")]}}}
    operation["parameters"] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in _IN_PATH.findall(route.path)
    ] + [
        {"name": name, "in": "query", "required": False, "schema": {"type": "string"}} for name in route.query
    ]
    good = {route.media: {"schema": parts[(route.answer, "serialization")] if route.answer else {"type": "string"}}}
    if route.streams:
        good[_EVENTS] = {"schema": _EVENT}
    operation["responses"] = {"200": {"description": "Successful Response", "content": good}}
    for status in _errors(route):
        shape = HealthAnswer if route.answer is HealthAnswer else route.error
        operation["responses"][str(status)] = {
            "description": HTTPStatus(status).phrase,
            "content": {_JSON: {"schema": parts[(shape, "serialization")]}},
        }


def _errors(route: Route) -> list[int]:
    if route.answer is HealthAnswer:
        return [503]
    found = [] if route.path in OPEN_PATHS else [401]
    found += _BODY_ERRORS if route.body is not None else ()
    found += _ENGINE_ERRORS if route.needs_engine else ()
    return sorted({*found, *route.statuses})


def _schemas() -> tuple[Schemas, dict[str, Any]]:
    kinds: list[tuple[Any, JsonSchemaMode]] = [(r.body, "validation") for r in ROUTES if r.body is not None]
    kinds += [(r.answer, "serialization") for r in ROUTES if r.answer is not None]
    kinds += [(r.error, "serialization") for r in ROUTES]
    inputs = [(kind, kind[1], TypeAdapter(kind[0])) for kind in dict.fromkeys(kinds)]
    found, definitions = TypeAdapter.json_schemas(inputs, ref_template=_REF)
    return {key: value for (key, _), value in found.items()}, definitions.get("$defs", {})
