"""From the bytes of a request to a JSON object: media type, size, coding, nesting, JSON, in this order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headway.errors import RequestError
from headway.http.body import read_bytes
from headway.http.client_watch import Receive
from headway.http.compression import codings_of, decoded
from headway.runtime.http.state import WorkerState
from headway.wire.limits import BodyLimits
from headway.wire.parse import parse_object

SHORT_BODY = 16 * 1024  # bytes; what is longer is read and planned off the event loop


async def read_object(
    state: WorkerState, headers: Mapping[bytes, bytes], receive: Receive, max_bytes: int | None
) -> tuple[dict[str, Any], int]:
    """The JSON object and the bytes that it had. Raises RequestError, ClientLeft."""
    _require_json(headers.get(b"content-type", b"").decode("latin-1"))
    codings = codings_of(headers.get(b"content-encoding", b"").decode("latin-1"))
    limits = state.limits_for(max_bytes)
    announced = headers.get(b"content-length", b"").decode("latin-1")
    raw = await read_bytes(receive, announced, limits, state.http.request_body_timeout)
    if not codings and len(raw) <= SHORT_BODY:
        return parse_object(raw, limits), len(raw)
    return await state.plan_elsewhere(lambda: _expand(raw, codings, limits))


def _expand(raw: bytes, codings: list[str], limits: BodyLimits) -> tuple[dict[str, Any], int]:
    plain = decoded(raw, codings, limits)
    return parse_object(plain, limits), len(plain)


def _require_json(given: str) -> None:
    kind = given.partition(";")[0].strip().lower()
    if kind and kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        raise RequestError(
            f"The body must be application/json, got {kind[:80]!r}", reason="media_type_unsupported", param="content-type",
            fix="Send the header Content-Type: application/json.",
        )  # fmt: skip
