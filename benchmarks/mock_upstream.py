"""A backend that answers at once with the same chat completion: what a proxy adds is all that is left to measure. A stream has one chunk each 100 ms,
whose text is the time at which it was sent (`time.monotonic_ns`).

Run by benchmarks: uvicorn mock_upstream:app --app-dir benchmarks --port PORT --log-level warning
"""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

_HEAD = {"id": "chatcmpl-0", "created": 1, "model": "mock"}
_CHOICE = {"index": 0, "message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}
_WHOLE = json.dumps(
    {**_HEAD, "object": "chat.completion", "choices": [_CHOICE], "usage": {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6}}
).encode()
_CHUNKS, _PAUSE_SECONDS = 30, 0.1
_HEADERS = [(b"content-type", b"application/json"), (b"content-length", str(len(_WHOLE)).encode())]


async def app(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "lifespan":
        while (message := await receive())["type"] != "lifespan.shutdown":
            await send({"type": f"{message['type']}.complete"})
        await send({"type": "lifespan.shutdown.complete"})
        return
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    if b'"stream":true' in body.replace(b" ", b""):
        await _stream(send)
        return
    await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
    await send({"type": "http.response.body", "body": _WHOLE})


async def _stream(send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
    for at in range(_CHUNKS):
        last = at == _CHUNKS - 1
        choice = {"index": 0, "delta": {"content": str(time.monotonic_ns())}, "finish_reason": "stop" if last else None}
        data = json.dumps({**_HEAD, "object": "chat.completion.chunk", "choices": [choice]})
        end = "\n\ndata: [DONE]\n\n" if last else "\n\n"
        await send({"type": "http.response.body", "body": f"data: {data}{end}".encode(), "more_body": True})
        if not last:
            await asyncio.sleep(_PAUSE_SECONDS)
    await send({"type": "http.response.body", "body": b""})
