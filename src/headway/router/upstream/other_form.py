"""Answers that came in the form that was not asked for: a stream instead of one piece, or one piece instead of a stream."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import orjson

from headway.router.plugins.completion import Collected, chunks_of_body, stream
from headway.router.request.decoding import chunks_of
from headway.router.request.reply import Reply
from headway.router.upstream.exchange import ANSWER_LIMIT
from headway.wire.sse import CONTENT_TYPE, DONE, frame


def as_stream(answer: Reply, body: dict[str, Any], path: str | None, with_usage: bool) -> Reply:
    """`answer`, whose JSON is `body`, as a stream that says the same. A text completion is one event: its pieces have the form of the whole."""
    found = Reply(status=answer.status, content_type=CONTENT_TYPE, headers=answer.headers)
    if path is None:
        found.chunks = stream(chunks_of_body(body, with_usage))
    else:
        found.raw_chunks = _one_event(body)
    return found


async def as_one_piece(answer: Reply) -> Reply | None:
    """The stream `answer` in one piece, None when it has no end or is larger than an answer in one piece may be. Raises what the stream raises."""
    collected, size = Collected(), 0
    try:
        async for chunk in chunks_of(answer):
            size += len(orjson.dumps(chunk))
            if size > ANSWER_LIMIT:
                return None
            collected.add(chunk)
    finally:
        await answer.close()
    return Reply(status=answer.status, body=collected.body(), headers=answer.headers) if collected.complete else None


async def _one_event(body: dict[str, Any]) -> AsyncIterator[bytes]:
    yield frame(orjson.dumps(body)) + DONE
