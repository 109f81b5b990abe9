"""Requests that a decision routed, over scripted backends."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from headway.router.config.document.document import Document
from headway.router.decisions.result import DecisionResult
from headway.router.generation.generation import CompiledRecipe
from headway.router.request.context import RequestContext
from headway.router.request.reply import Reply
from headway.router.signals.kind import Recipe
from tests.router.upstream.harness import Sender


def routed_document(models: list[dict[str, Any]], decision: dict[str, Any], routing: dict[str, Any] | None = None, **rest: Any) -> Document:
    whole = {"name": "d", **decision}
    return Document.model_validate({"version": "v0.3", "providers": {"models": models}, "routing": {**(routing or {}), "decisions": [whole]}, **rest})


def routed(sender: Sender, *order: str, body: dict[str, Any] | None = None, **fields: Any) -> RequestContext:
    """As if the decision `d` had won and its models were ranked in this order."""
    context = sender.context(body, *order, **fields)
    assert sender.generation.document.routing is not None
    recipe = Recipe(sender.generation.document, sender.generation.document.routing)
    context.recipe = cast(CompiledRecipe, SimpleNamespace(recipe=recipe, name="default"))
    context.decision = DecisionResult("d", 1.0)
    return context


async def send(sender: Sender, *order: str, **fields: Any) -> tuple[Reply, RequestContext]:
    context = routed(sender, *order, **fields)
    return await sender.upstreams.send(context), context
