"""Route: one row of the table of routes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from fastapi import Request
from pydantic import BaseModel
from starlette.responses import Response

from headway.server.settings import ServerSettings
from headway.wire.errors import ErrorBody

Handler = Callable[[Request], Awaitable[Response]]


def _always(settings: ServerSettings) -> bool:
    return True


class Route(NamedTuple):
    """`counted`: a request that the engine works for, part of the server's load. `streams`: events, when asked for. `error`: how
    refusals look; `statuses` are those that others do not have.

    `exists` tells whether the operator wants it.
    """

    path: str
    methods: tuple[str, ...]
    handler: Handler
    body: type[BaseModel] | None = None
    answer: Any = None
    counted: bool = False
    streams: bool = False
    needs_engine: bool = True
    media: str = "application/json"
    query: tuple[str, ...] = ()
    exists: Callable[[ServerSettings], bool] = _always
    error: Any = ErrorBody
    statuses: tuple[int, ...] = ()
