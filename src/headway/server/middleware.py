"""What happens to every request around its handler: counting, request id headers. Plain ASGI, no buffering."""

from __future__ import annotations

import time
import uuid

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headway.server.routes import NOT_BUILT_ROUTES, ROUTES
from headway.server.state import ServerState

_COUNTED = frozenset(route.path for route in ROUTES if route.counted)
_KNOWN = frozenset(route.path for route in ROUTES) | NOT_BUILT_ROUTES.keys()


class UnderPrefix:
    """The server is reached under a prefix, which the proxy in front may or may not have cut off."""

    def __init__(self, app: ASGIApp, prefix: str):
        self._app = app
        self._prefix = prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["root_path"] = self._prefix
        await self._app(scope, receive, send)


class Accounting:
    """HTTP metrics and the server's load; a request keeps the engine that it began with."""

    def __init__(self, app: ASGIApp, state: ServerState):
        self._app = app
        self._state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        counted = path in _COUNTED
        status = 500
        start = time.perf_counter()

        async def note_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        self._state.load += counted
        try:
            with self._state.one_engine():
                await self._app(scope, receive, note_status)
        finally:
            self._state.load -= counted
            handler = path if path in _KNOWN else getattr(scope.get("route"), "path", "none")
            self._state.metrics.on_http(handler, scope["method"], status, time.perf_counter() - start)


class RequestIdHeaders:
    """Answers carry `X-Request-Id`: the client's own, or the one that the answer's id was made from."""

    def __init__(self, app: ASGIApp):
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        assigned = Headers(scope=scope).get("x-request-id") or uuid.uuid4().hex
        scope.setdefault("state", {})["request_id"] = assigned

        async def with_header(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["x-request-id"] = assigned
            await send(message)

        await self._app(scope, receive, with_header)
