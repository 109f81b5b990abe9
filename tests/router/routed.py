"""Recipes of tests, and what they make of a request: signals, projections and decisions, without the rest of a router."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headway.router.config.document.document import Document
from headway.router.config.document.routing import Routing
from headway.router.decisions.engine import compile_decisions
from headway.router.decisions.result import DecisionResult
from headway.router.deployments.calls import Stages
from headway.router.observation import Observation, Observations
from headway.router.projections.compiled import compile_projections
from headway.router.request.deadline import Deadline
from headway.router.request.identity import Identity
from headway.router.request.view import RequestView
from headway.router.signals.extraction import compile_extraction
from headway.router.signals.kind import Recipe


class NoStages:
    """For recipes without model signals."""

    def open(self, deadline: Deadline) -> Any:
        raise AssertionError("no signal of this recipe asks a model")


@dataclass(frozen=True)
class Routed:
    observations: Observations
    scores: Mapping[str, float]
    decision: DecisionResult

    def __getitem__(self, key: str) -> Observation:
        found = self.observations.get(*key.split(":", 1))
        assert found is not None, key
        return found


def recipe(routing: Mapping[str, Any], **document: Any) -> Recipe:
    whole = Document.model_validate({"version": "v0.3", "routing": routing, **document})
    return Recipe(whole, whole.routing or Routing())


def route(recipe: Recipe, request: str | Mapping[str, Any], identity: Identity | None = None, stages: Stages | None = None) -> Routed:
    body = {"messages": [{"role": "user", "content": request}]} if isinstance(request, str) else request
    return asyncio.run(_route(recipe, RequestView(body, identity), stages or NoStages()))


async def _route(recipe: Recipe, view: RequestView, stages: Stages) -> Routed:
    observations = await compile_extraction(recipe, stages).observe(view, Deadline.after(10))
    scores = compile_projections(recipe).apply(observations)
    return Routed(observations, scores, compile_decisions(recipe).decide(observations))


def signals_of(collection: str, type: str, rules: Sequence[Mapping[str, Any]]) -> Recipe:
    """A recipe whose one decision uses every rule of `rules`."""
    leaves = [{"type": type, "name": rule["name"]} for rule in rules]
    return recipe({"signals": {collection: list(rules)}, "decisions": [{"name": "all", "rules": {"operator": "OR", "conditions": leaves}}]})
