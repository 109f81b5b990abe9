"""Every error leaves the server as the envelope of `wire.errors`, also those of the framework."""

from __future__ import annotations

import logging

from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from headway.errors import HeadwayError, NotFoundError, RequestError
from headway.http.client_watch import ClientLeft
from headway.server.routes import NOT_BUILT_ROUTES
from headway.wire.anthropic.errors import anthropic_error_bytes
from headway.wire.errors import RETRY_AFTER_SECONDS, error_bytes, reason_of, shape_of

_log = logging.getLogger(__name__)
_ANTHROPIC = "/v1/messages"
_CLIENT_LEFT = 499  # not a status of HTTP; it keeps such requests apart in the metrics


def error_response(error: BaseException, path: str = "") -> Response:
    """In the form that the clients of `path` read."""
    status, _ = shape_of(error)
    headers = {}
    reason = reason_of(error)
    if reason in RETRY_AFTER_SECONDS:
        headers["retry-after"] = str(RETRY_AFTER_SECONDS[reason])
    if reason == "unauthorized":
        headers["www-authenticate"] = "Bearer"
    if reason in ("body_too_large", "request_timeout"):
        headers["connection"] = "close"  # the rest of the body is not read
    body = anthropic_error_bytes(error) if _ANTHROPIC in path else error_bytes(error)
    return Response(body, status_code=status, headers=headers, media_type="application/json")


def install_error_handlers(app: FastAPI) -> None:
    app.add_exception_handler(HeadwayError, _known)
    app.add_exception_handler(HTTPException, _framework)
    app.add_exception_handler(ClientDisconnect, _left)
    app.add_exception_handler(ClientLeft, _left)
    app.add_exception_handler(Exception, _defect)


async def _known(request: Request, error: Exception) -> Response:
    if shape_of(error).status == 500:
        _log.error("%s failed: %s", request.url.path, error)
    return error_response(error, request.url.path)


async def _framework(request: Request, error: Exception) -> Response:
    """404 of unknown routes, 405, and whatever else the framework raises."""
    path, method = request.url.path[:200], request.method[:20]
    status = error.status_code if isinstance(error, HTTPException) else 500
    if status == 404 and path in NOT_BUILT_ROUTES:
        return error_response(
            HeadwayError(
                f"{path} is not built yet: {NOT_BUILT_ROUTES[path]}", reason="route_not_built"
            )
        )
    if status == 404:
        return error_response(NotFoundError(f"There is no route {method} {path}", reason="route_not_found"), path)
    if status == 405:
        response = error_response(RequestError(f"{path} does not take {method}", reason="method_not_allowed"), path)
        allowed = getattr(error, "headers", None) or {}
        response.headers.update(allowed)
        return response
    return error_response(RequestError(f"The request cannot be read ({status})", reason="body_invalid"))


async def _left(request: Request, error: Exception) -> Response:
    """The client left, while its body was read or before its answer: nobody reads this, and uvicorn logs no line."""
    _log.info("%s %s: the client left before its answer", request.method[:20], request.url.path[:200])
    return Response(status_code=_CLIENT_LEFT)


async def _defect(request: Request, error: Exception) -> Response:
    """The framework raises the error again after this answer, so that the log shows the traceback."""
    return error_response(error, request.url.path)
