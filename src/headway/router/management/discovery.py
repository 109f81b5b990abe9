"""What the management address offers: a list, and an OpenAPI document, both made from the table of routes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from headway import __version__
from headway.router.management.answer import Answer, ManagementError
from headway.router.management.call import Call
from headway.router.management.route import Route

_WORD = re.compile(r"\{(\w+)\}")


async def index(call: Call) -> Answer:
    endpoints = [
        {"method": route.method, "path": route.path, "permission": route.permission, "description": route.summary, "aliases": list(route.aliases)}
        for route in call.routes
    ]
    return Answer({"service": "vllm-sr", "version": __version__, "endpoints": endpoints})


async def openapi(call: Call) -> Answer:
    """`?path=` and `&method=` narrow the document to one operation."""
    paths = openapi_paths(call.routes)
    path, method = call.query.get("path"), call.query.get("method", "").lower()
    if path is not None:
        if path not in paths or (method and method not in paths[path]):
            raise ManagementError("NOT_FOUND", "the document has no such operation", 404, fix="Leave out the query to see all.")
        paths = {path: {method: paths[path][method]} if method else paths[path]}
    return Answer({"openapi": "3.1.0", "info": {"title": "vllm-sr management API", "version": __version__}, "paths": paths})


def openapi_paths(routes: Sequence[Route]) -> dict[str, dict[str, Any]]:
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        operation: dict[str, Any] = {
            "operationId": f"{route.method.lower()}{re.sub(r'[^A-Za-z0-9]+', '_', route.path)}",
            "summary": route.summary,
            "responses": {
                "200": {"description": "Done.", "content": {"application/json": {}}},
                "default": {"description": "Refused.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}},
            },
        }
        if words := _WORD.findall(route.path):
            operation["parameters"] = [{"name": word, "in": "path", "required": True, "schema": {"type": "string"}} for word in words]
        if route.method in ("POST", "PUT", "PATCH"):
            operation["requestBody"] = {"content": {"application/json": {"schema": {"type": "object"}}}}
        if route.permission is not None:
            operation["x-permission"] = route.permission
        paths.setdefault(route.path, {})[route.method.lower()] = operation
    return paths


ROUTES = (
    Route("GET", "/api/v1", index, "docs.read", "The endpoints of this address."),
    Route("GET", "/openapi.json", openapi, "docs.read", "The endpoints as an OpenAPI document."),
)
