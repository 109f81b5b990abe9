"""The API description. Handlers read their bodies themselves, to check size and depth first, so bodies are added here."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import TypeAdapter
from pydantic.json_schema import JsonSchemaMode, JsonSchemaValue

from headway.server.routes import ROUTES
from headway.wire.errors import ErrorBody

_REF = "#/components/schemas/{model}"


def openapi(app: FastAPI) -> dict[str, Any]:
    """OpenAPI 3.1 of `app`, made once."""
    if app.openapi_schema is None:
        schema = get_openapi(title=app.title, version=app.version, routes=app.routes)
        parts, definitions = _schemas()
        for route in ROUTES:
            for method in route.methods:
                operation = schema["paths"][route.path][method.lower()]
                if route.body is not None:
                    content = {"application/json": {"schema": parts[(route.body, "validation")]}}
                    operation["requestBody"] = {"required": True, "content": content}
                if route.answer is not None:
                    answer = {"application/json": {"schema": parts[(route.answer, "serialization")]}}
                    operation["responses"]["200"]["content"] = answer
                error = {"application/json": {"schema": parts[(ErrorBody, "serialization")]}}
                operation["responses"]["default"] = {"description": "Error", "content": error}
        schema.setdefault("components", {})["schemas"] = definitions
        app.openapi_schema = schema
    return app.openapi_schema


def _schemas() -> tuple[dict[tuple[Any, JsonSchemaMode], JsonSchemaValue], dict[str, Any]]:
    kinds: list[tuple[Any, JsonSchemaMode]] = [(r.body, "validation") for r in ROUTES if r.body is not None]
    kinds += [(r.answer, "serialization") for r in ROUTES if r.answer is not None]
    kinds.append((ErrorBody, "serialization"))
    inputs = [(kind, kind[1], TypeAdapter(kind[0])) for kind in dict.fromkeys(kinds)]
    found, definitions = TypeAdapter.json_schemas(inputs, ref_template=_REF)
    return {key: value for (key, _), value in found.items()}, definitions.get("$defs", {})
