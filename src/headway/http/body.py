"""The bytes of a request's body, never more than the limit of them in memory, and not for ever."""

from __future__ import annotations

import asyncio

from headway.errors import RequestError
from headway.http.client_watch import ClientLeft, Receive
from headway.wire.limits import BodyLimits, too_large


async def read_bytes(receive: Receive, announced: str, limits: BodyLimits, seconds: float) -> bytes:
    """Everything that the client sends. `announced` is the header Content-Length ("" = none); `seconds` 0 = for ever.

    Raises RequestError (`body_too_large`, `request_timeout`), ClientLeft.
    """
    if announced.isdecimal() and int(announced[:20]) > limits.max_bytes:
        raise too_large(limits)
    try:
        async with asyncio.timeout(seconds or None):
            return await _read(receive, limits)
    except TimeoutError:
        raise RequestError(
            f"The body did not come within {seconds:g} s", reason="request_timeout", fix="Send it faster, or less of it."
        ) from None


async def _read(receive: Receive, limits: BodyLimits) -> bytes:
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientLeft
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > limits.max_bytes:
            raise too_large(limits)
        chunks.append(chunk)
        if not message.get("more_body", False):
            return b"".join(chunks)
