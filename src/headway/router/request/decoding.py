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
    """Reads on after the final event: a backend's connection can be used again only when it is at its end."""
    done = False
    try:
        async for data in events(raw):
            done = done or data == b"[DONE]"
            if done:
                continue
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
        text, held = rest + piece, b""
        if b"\r" in text:  # lines end with CR, LF, or both; a CR at the end may be half of both
            held = b"\r" if text.endswith(b"\r") else b""
            text = text.removesuffix(held).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = text.split(b"\n")
        rest = lines.pop() + held
        if len(rest) > EVENT_LIMIT:
            raise EventTooLargeError(f"an event has more than {EVENT_LIMIT} bytes")
        for line in lines:
            if line.startswith(b"data:"):
                data.append(line[6:] if line.startswith(b"data: ") else line[5:])
            elif not line and data:
                yield b"\n".join(data)
                data = []
    if rest.startswith(b"data:"):
        data.append(rest[5:].strip())
    if data:
        yield b"\n".join(data)
