"""From the bytes of a request to a checked body: media type, size, nesting, JSON, fields, in this order."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, TypeVar

from fastapi import Request
from pydantic import BaseModel

from headway.errors import RequestError
from headway.http.body import read_bytes
from headway.server.state import state_of
from headway.wire.limits import BodyLimits
from headway.wire.not_built import NotBuiltField, refuse_not_built
from headway.wire.parse import parse_body, parse_object

_log = logging.getLogger(__name__)
T = TypeVar("T", bound=BaseModel)
_LONG_BODY = 256 * 1024  # bytes; longer bodies are parsed off the event loop
_SHOWN_NAMES = 10
_KEPT = "headway.body"  # in the request's scope


async def read_body(request: Request, model: type[T], not_built: tuple[NotBuiltField, ...] = ()) -> T:
    """Raises RequestError (400, 408, 413) or NotBuiltError."""
    raw = await _raw(request)
    limits = state_of(request).limits
    if len(raw) > _LONG_BODY:
        return await asyncio.to_thread(_parse, raw, limits, model, not_built)
    return _parse(raw, limits, model, not_built)


async def read_fields(request: Request) -> dict[str, Any]:
    """The body as it is, for those who must look before they choose; it can be read again. Raises RequestError."""
    return parse_object(await _raw(request), state_of(request).limits)


async def _raw(request: Request) -> bytes:
    """The bytes of the body, kept for the next who asks."""
    kept: bytes | None = request.scope.get(_KEPT)
    if kept is not None:
        return kept
    require_json(request)
    _require_plain(request)
    state = state_of(request)
    announced = request.headers.get("content-length", "")
    raw = request.scope[_KEPT] = await read_bytes(request.receive, announced, state.limits, state.settings.request_body_timeout)
    return raw


def _parse(raw: bytes, limits: BodyLimits, model: type[T], not_built: tuple[NotBuiltField, ...]) -> T:
    fields = parse_object(raw, limits)
    refuse_not_built(not_built, fields)
    body = parse_body(model, fields)
    unknown = sorted(fields.keys() - model.model_fields.keys() - {entry.name for entry in not_built})
    if unknown:
        names = ", ".join(name[:40] for name in unknown[:_SHOWN_NAMES])
        _log.debug("ignored %d unknown field(s) of %s: %s", len(unknown), model.__name__, names)
    return body


def require_json(request: Request) -> None:
    given = request.headers.get("content-type", "")
    kind = given.partition(";")[0].strip().lower()
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        raise RequestError(
            f"Unsupported Media Type: the body must be application/json, got {given[:80]!r}",
            reason="media_type_unsupported",
            param="content-type",
        )


def _require_plain(request: Request) -> None:
    coding = request.headers.get("content-encoding", "identity").strip().lower()
    if coding not in ("identity", ""):
        raise RequestError(
            f"The body is encoded ({coding[:40]!r}), and this server takes plain JSON only",
            reason="media_type_unsupported",
            param="content-encoding",
            fix="Send it uncompressed.",
        )
