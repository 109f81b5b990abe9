"""StreamMeter: what a stream used, read off while it passes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import orjson

from headway.router.listener.usage import BYTES_PER_TOKEN, Usage, usage_of
from headway.router.request.reply import Chunks

_DATA, _USAGE = b"data:", b'"usage"'


class StreamMeter:
    """`hides_usage`: the router asked for usage, the client did not: the event that holds nothing else is taken out.

    `complete` once the stream has come to its end; `usage` is what the backend counted, None if it did not.
    """

    def __init__(self, hides_usage: bool) -> None:
        self._hides = hides_usage
        self._events = 0
        self.usage: Usage | None = None
        self.complete = False

    def estimate(self, prompt_bytes: int) -> Usage:
        """For a stream that was cut: events stand for tokens, bytes for those of the prompt."""
        return Usage(-(-prompt_bytes // BYTES_PER_TOKEN), max(0, self._events - 1), estimated=True)

    async def raw(self, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """The bytes of an event stream, each piece some whole events. Only events that tell usage are decoded."""
        try:
            async for piece in pieces:
                self._events += piece.count(_DATA)
                if _USAGE in piece:
                    piece = b"".join([event for event in piece.splitlines(keepends=True) if not self._is_hidden(event)])
                    if not piece.strip():
                        continue
                yield piece
            self.complete = True
        finally:
            await close_iterator(pieces)

    async def chunks(self, chunks: Chunks) -> Chunks:
        """The decoded chunks of a stream."""
        try:
            async for chunk in chunks:
                self._events += 1
                if chunk.get("usage") and self._notes_only_usage(chunk) and self._hides:
                    continue
                yield chunk
            self.complete = True
        finally:
            await close_iterator(chunks)

    def _is_hidden(self, line: bytes) -> bool:
        if not line.startswith(_DATA) or _USAGE not in line:
            return False
        chunk = orjson.loads(line[len(_DATA) :])
        return isinstance(chunk, dict) and self._notes_only_usage(chunk) and self._hides

    def _notes_only_usage(self, chunk: dict[str, Any]) -> bool:
        self.usage = usage_of(chunk) or self.usage
        return bool(chunk.get("usage")) and not chunk.get("choices")


async def close_iterator(iterator: object) -> None:
    """End the work behind an iterator that may not have been read to its end."""
    close = getattr(iterator, "aclose", None)
    if close is not None:
        await close()
