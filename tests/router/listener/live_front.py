"""A public listener on a real port before a scripted backend, in the event loop of the test."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, TypeVar

import anthropic
import httpx
import openai

from headway.http.listener import listen
from headway.http.server import HttpServer
from headway.http.settings import HttpSettings
from headway.http.shutdown import Ending
from headway.router.config.document.document import Document
from headway.router.config.document.resting_models import resting_models
from headway.router.decisions.engine import compile_decisions
from headway.router.deployments.deployments import RuntimeDeployments
from headway.router.generation.generation import CompiledRecipe, Generation
from headway.router.generation.generations import Generations
from headway.router.generation.names import compile_names
from headway.router.generation.services import Services
from headway.router.listener.app import PublicApp
from headway.router.listener.front import compile_front
from headway.router.plugins.table import compile_plugins
from headway.router.projections.compiled import compile_projections
from headway.router.request.context import RequestContext
from headway.router.selection.result import Selection
from headway.router.signals.extraction import compile_extraction
from headway.router.signals.kind import Recipe
from headway.router.upstream.upstreams import compile_upstreams
from tests.router.routed import NoStages
from tests.router.upstream.scripted_backend import ScriptedBackend

T = TypeVar("T")
AUTO = "vllm-sr/auto"
HELLO: list[Any] = [{"role": "user", "content": "hi there"}]


class _First:
    def __init__(self, model: str) -> None:
        self._model = model

    async def select(self, context: RequestContext) -> Selection:
        return Selection(self._model, "static", "the first", order=(self._model,))


class LiveFront:
    """`model` is the only one, asked at `backend`; further members of the document are given by name (`listeners`, `routing`, `global_`).

    `front` closes with everything that it opened.
    """

    def __init__(self, backend: ScriptedBackend | None, state: Path, environment: Mapping[str, str] | None = None, **document: Any) -> None:
        refs = [{"endpoint": backend.endpoint}] if backend is not None else []
        model = {"name": "m", "backend_refs": refs, **document.pop("model", {})}
        text = {"version": "v0.3", "listeners": [{"name": "public", "port": 1}], "providers": {"models": [model], "defaults": {"model": "m"}}, **document}
        self.document = Document.model_validate(text)
        self.services = Services(state)
        self.ending = Ending()
        self.generations = Generations()
        self._environment = environment or {}
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> LiveFront:
        self.generations.swap(self.generation(1))
        settings = HttpSettings(port=0, disable_uvicorn_access_log=True)
        listener = listen(settings)
        self.url = listener.url
        self.port = listener.port or 0
        server = HttpServer(PublicApp(self.generations, "public", self.ending), settings)
        serving = asyncio.create_task(server.serve(sockets=[listener.socket]))
        while not server.started:
            await asyncio.sleep(0.005)

        async def stop() -> None:
            server.should_exit = True
            await serving
            listener.close()
            await self.generations.close()
            await self.services.runtimes.close()
            await self.services.connections.close()
            self.services.spend.close()

        self._stack.push_async_callback(stop)
        self.http = await self._stack.enter_async_context(httpx.AsyncClient(base_url=self.url, trust_env=False, timeout=20))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    def generation(self, number: int) -> Generation:
        document = self.document
        recipe = Recipe(document, document.routing) if document.routing else None
        recipes = {"default": self._compiled(recipe)} if recipe else {}
        deployments = RuntimeDeployments(document, self.services.runtimes, self._environment)
        deployments.start(())
        return Generation(
            number=number,
            document=document,
            config_hash="",
            names=compile_names(document),
            recipes=recipes,
            upstreams=compile_upstreams(document, self.services, {}),
            deployments=deployments,
            services=self.services,
            front=compile_front(document, self._environment),
            version=number,
            resting=resting_models(document),
        )

    def _compiled(self, recipe: Recipe) -> CompiledRecipe:
        decisions = recipe.routing.decisions or ()
        return CompiledRecipe(
            recipe=recipe,
            extraction=compile_extraction(recipe, NoStages()),
            projections=compile_projections(recipe),
            decisions=compile_decisions(recipe),
            selectors={each.name or "": _First("m") for each in decisions if each.modelRefs},
            plugins={each.name or "": compile_plugins(each, recipe, self.services) for each in decisions},
            default_model="m",
        )

    def openai(self, key: str = "none", **options: Any) -> openai.AsyncOpenAI:
        client = openai.AsyncOpenAI(base_url=f"{self.url}/v1", api_key=key, max_retries=0, **options)
        self._stack.push_async_callback(client.close)
        return client

    def anthropic(self, key: str = "none") -> anthropic.AsyncAnthropic:
        client = anthropic.AsyncAnthropic(base_url=self.url, api_key=key, max_retries=0)
        self._stack.push_async_callback(client.close)
        return client

    async def chat(self, headers: Mapping[str, str] | None = None, **body: Any) -> httpx.Response:
        return await self.http.post("/v1/chat/completions", json={"model": "m", "messages": HELLO, **body}, headers=dict(headers or {}))

    def counted(self, name: str, *labels: str) -> float:
        return self.services.metrics.value(name, *labels)


def run(work: Callable[[], Awaitable[T]], seconds: float = 20) -> T:
    async def bounded() -> T:
        async with asyncio.timeout(seconds):
            return await work()

    return asyncio.run(bounded())


def events(text: str) -> list[Any]:
    """The JSON of each `data:` line, `[DONE]` left out."""
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def decision(name: str, rules: Mapping[str, Any] | None = None, plugins: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    return {"name": name, **({"rules": rules} if rules else {}), "modelRefs": [{"model": "m"}], "plugins": list(plugins)}
