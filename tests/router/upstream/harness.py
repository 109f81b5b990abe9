"""Compiled upstreams over scripted backends, and requests to send through them."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar, cast

from headway.router.config.document.document import Document
from headway.router.generation.generation import Generation
from headway.router.generation.services import Services
from headway.router.request.context import RequestContext
from headway.router.request.deadline import Deadline
from headway.router.request.identity import Identity
from headway.router.request.reply import Reply
from headway.router.selection.result import Selection
from headway.router.upstream.upstreams import ConnectedUpstreams, compile_upstreams

T = TypeVar("T")


def document(models: list[dict[str, Any]], **rest: Any) -> Document:
    return Document.model_validate({"version": "v0.3", "providers": {"models": models}, **rest})


def model(name: str, *endpoints: str, **fields: Any) -> dict[str, Any]:
    refs = [{"name": f"b{at}", "endpoint": endpoint} for at, endpoint in enumerate(endpoints)]
    return {"name": name, "backend_refs": refs, **fields}


class Sender:
    """One generation; `services` may be given to look across a reload."""

    def __init__(self, found: Document, services: Services | None = None, environment: Mapping[str, str] | None = None):
        self.services = services or Services(Path("/nonexistent"))
        self.upstreams: ConnectedUpstreams = compile_upstreams(found, self.services, environment or {})
        self.generation = cast(Generation, SimpleNamespace(services=self.services, upstreams=self.upstreams, document=found, number=1))

    def context(self, body: dict[str, Any] | None = None, *order: str, deadline: Deadline | None = None, **fields: Any) -> RequestContext:
        body = body or {"model": "vllm-sr/auto", "messages": [{"role": "user", "content": "hi"}]}
        context = RequestContext(self.generation, body, {}, Identity(), deadline or Deadline.after(45), "r1")
        order = order or ("m",)
        context.selection = Selection(order[0], "static", "test", order=order, **fields)
        return context

    async def send(self, *order: str, stream: bool = False, deadline: Deadline | None = None, **fields: Any) -> tuple[Reply, RequestContext]:
        body = {"model": "vllm-sr/auto", "messages": [{"role": "user", "content": "hi"}], "stream": stream}
        context = self.context(body, *order, deadline=deadline, **fields)
        return await self.upstreams.send(context), context

    async def close(self) -> None:
        await self.services.connections.close()


def run(work: Callable[[], Awaitable[T]], seconds: float = 20) -> T:
    async def bounded() -> T:
        async with asyncio.timeout(seconds):
            return await work()

    return asyncio.run(bounded())


async def pieces(reply: Reply) -> list[bytes]:
    assert reply.raw_chunks is not None
    return [piece async for piece in reply.raw_chunks]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
