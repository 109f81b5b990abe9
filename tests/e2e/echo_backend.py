"""`python -m tests.e2e.echo_backend FILE [PORT]`: a chat backend that says what it was asked, fast; its port (any free one unless given) is written to
FILE.

Texts choose what happens: `fail N ...` is answered with status N, `cut ...` ends a stream without its end, `slow ...` is answered after HELD_SECONDS.
`GET /most` tells how many requests it had at a time.
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from aiohttp import web

HELD_SECONDS = 0.2
_USAGE = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}


def text_of(body: dict[str, Any]) -> str:
    content = body["messages"][-1]["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


class Load:
    """Requests now, and the most there were."""

    now = most = 0


async def counted(request: web.Request) -> web.StreamResponse:
    Load.now += 1
    Load.most = max(Load.most, Load.now)
    try:
        return await chat(request)
    finally:
        Load.now -= 1


async def chat(request: web.Request) -> web.StreamResponse:
    body = json.loads(await request.read())
    text = text_of(body)
    if text.startswith("fail "):
        status = int(text.split()[1])
        return web.json_response({"error": {"message": "as you asked", "type": "X", "code": status}}, status=status)
    if text.startswith("slow "):
        await asyncio.sleep(HELD_SECONDS)
    if body.get("stream"):
        answer = web.StreamResponse(headers={"content-type": "text/event-stream"})
        with suppress(ConnectionResetError):  # whoever asked has left
            await stream(request, answer, text)
        return answer
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return web.json_response({"id": "c", "object": "chat.completion", "created": 1, "model": body["model"], "choices": [choice], "usage": _USAGE})


async def stream(request: web.Request, answer: web.StreamResponse, text: str) -> None:
    await answer.prepare(request)
    words = text.split(" ")[:30]
    for at, word in enumerate(words):
        await answer.write(event({"index": 0, "delta": {"content": word if at == 0 else " " + word}, "finish_reason": None}))
        await asyncio.sleep(0)
        if text.startswith("cut ") and at == 1:
            assert request.transport is not None
            request.transport.close()
            return
    await answer.write(event({"index": 0, "delta": {}, "finish_reason": "stop"}) + b"data: [DONE]\n\n")


def event(choice: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}).encode() + b"\n\n"


async def most(request: web.Request) -> web.Response:
    return web.json_response({"most": Load.most})


async def main(file: Path, port: int) -> None:
    app = web.Application(client_max_size=1 << 26)
    app.router.add_post("/v1/chat/completions", counted)
    app.router.add_get("/most", most)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port, reuse_address=True)
    await site.start()
    file.write_text(str(runner.addresses[0][1]))
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0))
