"""Whether a path exists on a port of one of the three servers, from their own tables and applications."""

from __future__ import annotations

import asyncio
from typing import Any

from headway.http.shutdown import Ending
from headway.router.generation.generations import Generations
from headway.router.listener.app import PublicApp
from headway.router.metrics.registry import RouterMetrics
from headway.router.process.metrics_app import metrics_app
from headway.runtime.http.app import OPEN_PATHS as OPEN_OF_RUNTIME
from headway.runtime.http.app import PAGES
from headway.server.routes import OPEN_PATHS, ROUTES


def is_open_page(component: str, port: str, path: str) -> bool:
    """GET `path` is answered without a key."""
    if component == "engine":
        return path in OPEN_PATHS and any(route.path == path and "GET" in route.methods for route in ROUTES)
    if component == "runtime":
        return path in OPEN_OF_RUNTIME and path in PAGES
    app = metrics_app(RouterMetrics(), Generations()) if port == "metrics" else PublicApp(Generations(), "public", Ending())
    return b'"error"' not in _answer(app, path)


def _answer(app: Any, path: str) -> bytes:
    """The body. Nothing is configured, so that all but probes is refused."""
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    scope = {"type": "http", "method": "GET", "path": path, "headers": [], "query_string": b"", "client": ("127.0.0.1", 1)}
    asyncio.run(app(scope, receive, send))
    return b"".join(message.get("body", b"") for message in sent)
