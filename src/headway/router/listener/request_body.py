"""The body of a request as an object, within the limits of bytes, time and depth."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import orjson

from headway.errors import RequestError
from headway.http.body import read_bytes
from headway.http.compression import codings_of, decoded
from headway.router.listener.request import PublicRequest
from headway.wire.limits import BodyLimits, check_depth

_EXPANDED_AT_ONCE: Final = 16 * 1024  # bytes; more may take longer to expand than other requests should wait


async def read_body(request: PublicRequest, limits: BodyLimits | None = None) -> bytes:
    """Expanded if it came compressed; `limits` are those of the configuration unless given. Raises RequestError, ClientLeft."""
    headers, limits = request.caller.headers, limits or request.front.limits
    _require_json(headers.get("content-type", ""))
    encoding = headers.get("content-encoding", "")
    codings = codings_of(encoding) if encoding else []
    seconds = request.front.body_seconds or request.rules.idle_seconds
    raw = await read_bytes(request.receive, headers.get("content-length", ""), limits, seconds)
    if not codings:
        return raw
    if len(raw) <= _EXPANDED_AT_ONCE:
        return decoded(raw, codings, limits)
    return await asyncio.to_thread(decoded, raw, codings, limits)


def _require_json(given: str) -> None:
    """Web pages may send anything else to any address without being asked, so a page could spend through a router on the reader's machine."""
    kind = given.partition(";")[0].strip().lower()
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        raise RequestError(
            f"The body must be JSON, got {given[:80]!r}", reason="media_type_unsupported", param="content-type", fix="Send content-type: application/json."
        )


def parsed(raw: bytes, limits: BodyLimits) -> dict[str, Any]:
    """Raises RequestError: `body_invalid`, `body_too_deep`."""
    check_depth(raw, limits)
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise RequestError(f"The body is no JSON: {error.msg} at line {error.lineno}, column {error.colno}", reason="body_invalid") from None
    if not isinstance(body, dict):
        raise RequestError("The body must be a JSON object", reason="body_invalid")
    return body
