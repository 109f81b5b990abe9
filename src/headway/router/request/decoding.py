"""From the raw bytes of an answer to objects, for those who must look inside: plugins, and protocols other than chat completions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import orjson

from headway.router.request.reply import Chunks, Reply

EVENT_LIMIT = 16 * 1024 * 1024


class EventTooLargeError(ValueError):
    """One server-sent event has more than EVENT_LIMIT bytes."""


def body_of(reply: Reply) -> dict[str, Any]:
    """The JSON object of an answer that is no stream; decoded once, and kept as the reply's body."""
    if reply.body is None:
        found = orjson.loads(reply.raw or b"{}")
        reply.body, reply.raw = (found if isinstance(found, dict) else {"data": found}), None
    return reply.body


def chunks_of(reply: Reply) -> Chunks:
    """The decoded chunks of a stream; the reply's own iterator is used up by it."""
    if reply.chunks is not None:
        return reply.chunks
    assert reply.raw_chunks is not None
    return _decoded(reply.raw_chunks)


async def _decoded(raw: AsyncIterator[bytes]) -> Chunks:
    try:
        async for data in events(raw):
            if data == b"[DONE]":
                return
            found = orjson.loads(data)
            if isinstance(found, dict):
                yield found
    finally:
        close = getattr(raw, "aclose", None)
        if close is not None:
            await close()


async def events(raw: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The `data` of each server-sent event, joined by line ends. Comments and other fields are dropped. Bytes may be cut anywhere.

    Raises EventTooLargeError.
    """
    rest = b""
    data: list[bytes] = []
    async for piece in raw:
        if rest.endswith(b"\r") and piece.startswith(b"\n"):
            rest, piece = rest[:-1], piece
        lines = (rest + piece).split(b"\n")
        rest = lines.pop()
        if len(rest) > EVENT_LIMIT:
            raise EventTooLargeError(f"an event has more than {EVENT_LIMIT} bytes")
        for line in lines:
            line = line.removesuffix(b"\r")
            if line.startswith(b"data:"):
                data.append(line[6:] if line.startswith(b"data: ") else line[5:])
            elif not line and data:
                yield b"\n".join(data)
                data = []
    if rest.startswith(b"data:"):
        data.append(rest[5:].strip())
    if data:
        yield b"\n".join(data)
