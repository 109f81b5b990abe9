"""An OpenAI-compatible server that answers from a script, on a real socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web


@dataclass
class ScriptedServer:
    """`frames` are sent to every request, None stands for a pause. `failures` requests are refused first."""

    frames: list[dict[str, Any] | str | None]
    failures: int = 0
    url: str = ""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    under_way: int = 0
    most_under_way: int = 0

    async def generate(self, request: web.Request) -> web.StreamResponse:
        if self.failures:
            self.failures -= 1
            return web.json_response({"error": {"message": "loading"}}, status=503)
        self.bodies.append(await request.json())
        self.headers.append(dict(request.headers))
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for frame in self.frames:
            if frame is None:
                await asyncio.sleep(0.02)
                continue
            await response.write(f"data: {frame if isinstance(frame, str) else json.dumps(frame)}\n\n".encode())
        self.under_way -= 1
        return response

    async def models(self, request: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": "scripted"}]})


@asynccontextmanager
async def serving(server: ScriptedServer) -> AsyncIterator[ScriptedServer]:
    app = web.Application()
    app.router.add_post("/v1/completions", server.generate)
    app.router.add_post("/v1/chat/completions", server.generate)
    app.router.add_get("/v1/models", server.models)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    assert runner.addresses
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        await runner.cleanup()
