"""From a request to the model that answers it. The live router and the preview both go through here, so they cannot disagree."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from headway.errors import HeadwayError
from headway.router.generation.generation import Generation
from headway.router.metrics.routing_counts import count_routing
from headway.router.request.context import RequestContext
from headway.router.request.metadata import check_metadata
from headway.router.selection.result import ALL_REST, Selection


class UnresolvedDecisionError(HeadwayError):
    """A decision could not be evaluated and its policy is to fail the request."""

    reason = "decision_unresolved"


async def route(context: RequestContext) -> None:
    """Fill recipe, observations, decision and selection.

    Raises RequestError for a model name that means nothing and metadata out of bounds, UnresolvedDecisionError.
    """
    generation = context.generation
    name = generation.names.resolve(context.view.model)
    if name.recipe is None:
        named = Selection(name.model, "passthrough", "the request names this model", order=(name.model or "",), lora=name.lora)
        context.selection = awake(named, generation)
        return
    check_metadata(context.body.get("metadata"))
    recipe = context.recipe = generation.recipes[name.recipe]
    with _timed(context, "signals"):
        context.observations = await recipe.extraction.observe(context.view, context.deadline)
    with _timed(context, "projections"):
        context.projection_scores = dict(recipe.projections.apply(context.observations))
    with _timed(context, "decisions"):
        decision = context.decision = recipe.decisions.decide(context.observations)
    if not context.dry_run:
        count_routing(generation.services.metrics, recipe.name, context.observations, context.projection_scores, decision)
        generation.services.metrics.observe("llm_decision_evaluation_latency_seconds", context.timings_ms["decisions"] / 1000)
    if decision.policies:
        context.response_headers["x-vsr-applied-unknown-policy"] = ",".join(f"{name}={policy}" for name, policy in decision.policies.items())
    if decision.failed is not None:
        raise UnresolvedDecisionError(
            f'decision "{decision.failed}" cannot be evaluated: a signal that it needs is unknown', fix="Try again, or see signal_errors in the preview."
        )
    with _timed(context, "selection"):
        context.selection = awake(await _select(context), generation)


def awake(selection: Selection, generation: Generation) -> Selection:
    """The selection, unless its model takes no requests: then there is none."""
    if selection.model not in generation.resting:
        return selection
    return replace(selection, model=None, order=(), status="unavailable", reason=ALL_REST)


async def _select(context: RequestContext) -> Selection:
    recipe, chosen = context.recipe, context.decision_name
    assert recipe is not None
    if chosen is not None and chosen in recipe.selectors:
        return await recipe.selectors[chosen].select(context)
    model = recipe.default_model
    status = "selected" if model else "unavailable"
    reason = "no decision matched" if chosen is None else f'decision "{chosen}" names no model'
    return Selection(model, "default", reason, status, order=(model,) if model else ())


@contextmanager
def _timed(context: RequestContext, stage: str) -> Iterator[None]:
    began = time.perf_counter()
    try:
        yield
    finally:
        seconds = time.perf_counter() - began
        context.timings_ms[stage] = seconds * 1000
        context.generation.services.metrics.observe("llm_routing_stage_duration_seconds", seconds, stage)
