"""A server application and its engine on one event loop, called without sockets."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx

from headway.server.app import create_app
from headway.server.settings import ServerSettings
from headway.telemetry.metrics import EngineMetrics
from tests.server.scripted_engine import ScriptedEngine

COMPLETIONS, CHAT = "/v1/completions", "/v1/chat/completions"
USER = [{"role": "user", "content": "Hi"}]


class Api:
    def __init__(self, engine: ScriptedEngine | None = None, **settings: Any):
        self.engine = engine or ScriptedEngine()
        self.metrics = EngineMetrics("tiny", max_model_len=self.engine.max_model_len)
        self.app = create_app(self.engine, ServerSettings(**settings), self.metrics)
        self.runner = asyncio.Runner()

    def close(self) -> None:
        self.runner.close()

    def call(self, method: str, path: str, **kwargs: Any) -> httpx.Response:
        async def run() -> httpx.Response:
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
                return await client.request(method, path, **kwargs)

        return self.runner.run(run())

    def get(self, path: str, **kwargs: Any) -> httpx.Response:
        return self.call("GET", path, **kwargs)

    def post(self, path: str, body: Any, **kwargs: Any) -> httpx.Response:
        return self.call("POST", path, json=body, **kwargs)

    def complete(self, **body: Any) -> dict[str, Any]:
        return ok(self.post(COMPLETIONS, {"prompt": "Say", **body}))

    def chat(self, **body: Any) -> dict[str, Any]:
        return ok(self.post(CHAT, {"messages": USER, **body}))

    def stream(self, path: str, **body: Any) -> list[dict[str, Any]]:
        base: dict[str, Any] = {"messages": USER} if path == CHAT else {"prompt": "Say"}
        response = self.post(path, {**base, "stream": True, **body})
        assert response.status_code == 200, response.text
        assert response.headers["content-type"].startswith("text/event-stream")
        return frames(response.text)


def ok(response: httpx.Response) -> dict[str, Any]:
    assert response.status_code == 200, response.text
    value: dict[str, Any] = response.json()
    return value


def frames(text: str) -> list[dict[str, Any]]:
    """The JSON of each event; checks the framing and that [DONE] comes once, last."""
    events = text.split("\n\n")
    assert events.pop() == ""
    assert events.pop() == "data: [DONE]"
    return [json.loads(event.removeprefix("data: ")) for event in events if not event.startswith(":")]


def error(response: httpx.Response, status: int, reason: str | None = None, param: str | None = None) -> dict[str, Any]:
    """The envelope of a refusal, checked."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"].startswith("application/json")
    body = response.json()
    assert body.keys() == {"error"}
    found: dict[str, Any] = body["error"]
    assert found.keys() == {"message", "type", "param", "code", "reason"}
    assert found["code"] == status
    assert found["message"]
    if reason is not None:
        assert found["reason"] == reason, found
    if param is not None:
        assert found["param"] == param, found
    return found
