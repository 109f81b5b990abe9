"""All parts of one router process in the event loop of a test: its configurations, its public listener, its management address."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx

from headway.router.config.load import load_document
from headway.router.generation.reload import Applied
from headway.router.process.lifecycle import RouterLifecycle
from headway.router.process.settings import Address, ServeSettings

FIRST = "version: v0.3\nlisteners: [{name: public, port: 8899}]\n"


def _silent(sentence: str) -> None:
    """Nobody waits in a terminal."""


class WholeRouter:
    """`public` and `management` are clients of its two applications, as from a loopback peer; the ports are never opened."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        settings = ServeSettings(folder / "config.yaml", folder / "state", environment)
        settings.state.mkdir(mode=0o700)
        self.lifecycle = RouterLifecycle(settings, _silent, load_document(FIRST, environment).document)
        self.public = _client(self.lifecycle.public_app(Address("public", "127.0.0.1", 8899)))
        self.management = _client(self.lifecycle.management_app())

    async def offer(self, text: str) -> Applied:
        return await self.lifecycle.offer(text)

    async def validate(self, text: str) -> dict[str, Any]:
        answer = await self.management.post("/api/v1/config/validate", json={"yaml": text})
        found: dict[str, Any] = answer.json()
        return found

    async def close(self) -> None:
        await self.public.aclose()
        await self.management.aclose()
        await self.lifecycle.close()


def _client(app: Any) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app, raise_app_exceptions=True), base_url="http://router", timeout=30)
