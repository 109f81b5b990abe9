"""A generation with one decision and its plugins, a scripted backend behind it and scripted models beside it."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar, cast

import numpy as np

from headway.router.answering import answer
from headway.router.config.document.document import Document
from headway.router.config.document.resting_models import resting_models
from headway.router.decisions.result import DecisionResult
from headway.router.generation.generation import CompiledRecipe, Generation, ResolvedName
from headway.router.generation.services import Services
from headway.router.observation import Observations
from headway.router.plugins.completion import chunks_of_body, completion, stream
from headway.router.plugins.table import compile_plugins
from headway.router.request.context import RequestContext
from headway.router.request.deadline import Deadline
from headway.router.request.identity import Identity
from headway.router.request.reply import Reply
from headway.router.selection.result import Selection
from headway.router.signals.kind import Recipe
from tests.router.scripted_calls import ScriptedCalls

T = TypeVar("T")
ALICE = Identity(user="alice", tenant="acme", team="red")
BOB = Identity(user="bob", tenant="acme", team="red")
EMBEDDING = {"model_catalog": {"bindings": {"embedding": {"deployment": "emb", "contract": "embedding.v1"}}}}


def run(work: Callable[[], Awaitable[T]], seconds: float = 20) -> T:
    async def bounded() -> T:
        async with asyncio.timeout(seconds):
            return await work()

    return asyncio.run(bounded())


def alike(_: Any) -> list[float]:
    """A model that finds all texts the same: only the guard and the identities stand between them."""
    return [0.6, 0.8, 0.0, 0.0]


def apart(given: Any) -> list[float]:
    """A model that finds every text unlike every other."""
    seed = int.from_bytes(hashlib.sha256(str(given).encode()).digest()[:4], "big")
    vector = np.random.default_rng(seed).standard_normal(64)
    return list(vector / np.linalg.norm(vector))


def chat(text: str, **fields: Any) -> dict[str, Any]:
    return {"model": "vllm-sr/auto", "messages": [{"role": "user", "content": text}], **fields}


@dataclass(frozen=True, slots=True)
class Told:
    """What the client got. `body` of a whole answer, `chunks` of a stream."""

    reply: Reply
    context: RequestContext
    body: dict[str, Any] | None
    chunks: list[dict[str, Any]]

    @property
    def path(self) -> str:
        return self.reply.path

    @property
    def text(self) -> str:
        if self.body is not None:
            return str(self.body["choices"][0]["message"]["content"])
        return "".join(choice["delta"].get("content") or "" for chunk in self.chunks for choice in chunk.get("choices", ()))


class Rig:
    """`sent` are the bodies that reached the backend, `answers` makes its replies."""

    def __init__(
        self,
        state: Path,
        *plugins: tuple[str, Mapping[str, Any]],
        models: ScriptedCalls | None = None,
        settings: Mapping[str, Any] | None = None,
        answers: Callable[[RequestContext], Reply | dict[str, Any]] | None = None,
        services: Services | None = None,
        routing: Mapping[str, Any] | None = None,
        decision: Mapping[str, Any] | None = None,
    ) -> None:
        entry = {"name": "d", "plugins": [{"type": kind, "configuration": dict(found)} for kind, found in plugins], **(decision or {})}
        self.document = Document.model_validate({"version": "v0.3", "routing": {"decisions": [entry], **(routing or {})}, "global": dict(settings or EMBEDDING)})
        assert self.document.routing is not None
        self.services = services or Services(state)
        self.models = models or ScriptedCalls(vectors=alike)
        self.sent: list[dict[str, Any]] = []
        self.headers_sent: list[dict[str, str | None]] = []
        self._answers = answers or (lambda context: completion(f"answer {len(self.sent)}", "m"))
        recipe = Recipe(self.document, self.document.routing)
        self.plugins = compile_plugins((self.document.routing.decisions or [])[0], recipe, self.services)
        compiled = CompiledRecipe(recipe, cast(Any, self), cast(Any, self), cast(Any, self), {"d": cast(Any, self)}, {"d": self.plugins}, "m")
        parts = {"names": self, "upstreams": self, "deployments": self, "recipes": {"default": compiled}, "number": 1, "config_hash": "h"}
        self.generation = cast(Generation, SimpleNamespace(services=self.services, document=self.document, resting=resting_models(self.document), **parts))

    async def ask(
        self, body: Mapping[str, Any] | str, identity: Identity = ALICE, headers: Mapping[str, str] | None = None, **fields: Any
    ) -> Told:
        given = chat(body) if isinstance(body, str) else dict(body)
        context = RequestContext(self.generation, given, headers or {}, identity, Deadline.after(20), "r1", **fields)
        reply = await answer(context)
        chunks = [chunk async for chunk in reply.chunks] if reply.chunks is not None else []
        return Told(reply, context, reply.body, chunks)

    # what the router's other parts do, each in one line
    def resolve(self, model: str) -> ResolvedName:
        return ResolvedName(recipe="default")

    async def observe(self, view: Any, deadline: Deadline) -> Observations:
        return Observations()

    def apply(self, observations: Observations) -> Mapping[str, float]:
        return {}

    def decide(self, observations: Observations) -> DecisionResult:
        return DecisionResult("d", None)

    async def select(self, context: RequestContext) -> Selection:
        return Selection("m", "static", "test", order=("m",))

    def open(self, deadline: Deadline) -> Any:
        return self

    def join(self) -> Any:
        return _Joined(self.models)

    async def send(self, context: RequestContext) -> Reply:
        self.sent.append(context.body)
        self.headers_sent.append(dict(context.upstream_headers))
        made = self._answers(context)
        if isinstance(made, Reply):
            return made
        if context.streams:
            return Reply(chunks=stream(chunks_of_body(made, with_usage=True)), content_type="text/event-stream")
        return Reply(body=made)


class _Joined:
    """A participant of a stage: its calls, and that it left."""

    def __init__(self, models: ScriptedCalls) -> None:
        self._models = models

    def leave(self) -> None:
        self._models.calls.append(("leave", "", None))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._models, name)


async def cut(chunks: list[dict[str, Any]]) -> AsyncIterator[dict[str, Any]]:
    for chunk in chunks:
        yield chunk
