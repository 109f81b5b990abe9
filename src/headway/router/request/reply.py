"""Reply: what goes back to the client, whole or as a stream, in the shape of chat completions until the protocol encodes it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

Chunks: TypeAlias = AsyncIterator[dict[str, Any]]
"""Decoded `chat.completion.chunk` objects; the end of the iterator is the end of the stream (`[DONE]`)."""


class Source(Protocol):
    async def aclose(self) -> None: ...


@dataclass(slots=True)
class Reply:
    """One of `body` (a JSON object), `raw` (bytes passed on as they came) and `chunks` / `raw_chunks` (a stream) is set.

    `path` is the value of `x-vsr-response-path`: upstream, cache, fast_response, looper, blocked, rate_limited, error. Raw forms exist because
    most answers need no look inside: nothing is decoded for them. Each piece of `raw_chunks` is some whole events.

    A stream that fails raises HeadwayError from its iterator, after which it has no more pieces. `source` is where a stream comes from; whoever stops
    reading before the end calls `close`, which ends the backend's work even if no iterator was begun.
    """

    status: int = 200
    path: str = "upstream"
    body: dict[str, Any] | None = None
    raw: bytes | None = None
    chunks: Chunks | None = None
    raw_chunks: AsyncIterator[bytes] | None = None
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    source: Source | None = None

    @property
    def streams(self) -> bool:
        return self.chunks is not None or self.raw_chunks is not None

    async def close(self) -> None:
        if self.source is not None:
            await self.source.aclose()
