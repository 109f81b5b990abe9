"""A backend that answers at once with the same chat completion: what a proxy adds is all that is left to measure.

Run by benchmarks: uvicorn mock_upstream:app --app-dir benchmarks --port PORT --log-level warning
"""

from __future__ import annotations

import json
from typing import Any

_HEAD = {"id": "chatcmpl-0", "created": 1, "model": "mock"}
_CHOICE = {"index": 0, "message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}
_WHOLE = json.dumps(
    {**_HEAD, "object": "chat.completion", "choices": [_CHOICE], "usage": {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6}}
).encode()
_HEADERS = [(b"content-type", b"application/json"), (b"content-length", str(len(_WHOLE)).encode())]


async def app(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "lifespan":
        while (message := await receive())["type"] != "lifespan.shutdown":
            await send({"type": f"{message['type']}.complete"})
        await send({"type": "lifespan.shutdown.complete"})
        return
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
    await send({"type": "http.response.body", "body": _WHOLE})
