"""One request, observed by the rules of one kind."""

from __future__ import annotations

import asyncio
from typing import Any

from headway.router.config.document.document import Document
from headway.router.config.document.routing import Routing
from headway.router.observation import Observation
from headway.router.request.view import RequestView
from headway.router.signals.kind import Recipe
from headway.router.signals.table import KIND_OF_TYPE
from tests.router.scripted_calls import ScriptedCalls

EMBEDDING = {"bindings": {"embedding": {"deployment": "minilm", "contract": "embedding.v1"}}}


def recipe_of(signals: dict[str, Any], catalog: dict[str, Any] | None = None, **routing: Any) -> Recipe:
    """`signals` and `routing` as under `routing`, `catalog` as under `global.model_catalog`."""
    document = Document.model_validate(
        {"version": "v0.3", "routing": {"signals": signals, **routing}, "global": {"model_catalog": catalog or {}}}
    )
    return Recipe(document, document.routing or Routing())


def compiled(kind: str, recipe: Recipe) -> list[Any]:
    rules = getattr(recipe.routing.signals, KIND_OF_TYPE[kind].collection)
    return list(KIND_OF_TYPE[kind].compile(rules, recipe))


def observe(signals: list[Any], calls: ScriptedCalls, *turns: str, messages: list[dict[str, Any]] | None = None) -> dict[str, Observation]:
    """By name. `turns` are those of the user, with an answer between each."""
    if messages is None:
        messages = []
        for turn in turns:
            messages += [{"role": "user", "content": turn}, {"role": "assistant", "content": "yes"}]
        messages = messages[:-1]

    async def run() -> list[Observation]:
        view = RequestView({"messages": messages})
        return [one for signal in signals for one in await signal.observe(view, calls)]

    return {found.name: found for found in asyncio.run(run())}


def observed(kind: str, rules: list[dict[str, Any]], calls: ScriptedCalls, *turns: str, catalog: dict[str, Any] | None = None,
             messages: list[dict[str, Any]] | None = None) -> dict[str, Observation]:  # fmt: skip
    recipe = recipe_of({KIND_OF_TYPE[kind].collection: rules}, catalog)
    return observe(compiled(kind, recipe), calls, *turns, messages=messages)
