"""What `--middleware` is given in tests."""

from __future__ import annotations

from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class Stamped:
    """Adds a header to every answer."""

    def __init__(self, app: ASGIApp):
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def stamped(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["x-stamp"] = "class"
            await send(message)

        await self._app(scope, receive, stamped)


async def shout(request: Any, call_next: Any) -> Any:
    response = await call_next(request)
    response.headers["x-shout"] = request.method
    return response


NOTHING = 7
