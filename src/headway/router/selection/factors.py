"""What models are compared by: quality, latency, cost, load, experience."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from headway.router.config.document.model_signals import DomainRule
from headway.router.config.document.routing import RecipeRouting
from headway.router.request.context import RequestContext
from headway.router.selection.candidates import Candidate
from headway.router.truth import Truth

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([bmkt])?", re.IGNORECASE)
_SCALE = {"k": 1e3, "m": 1e6, "b": 1e9, "t": 1e12}


def domain_scores(routing: RecipeRouting) -> Mapping[str, Mapping[str, float]]:
    """`model_scores` by the name of the domain rule."""
    rules: Sequence[DomainRule] = (routing.signals and routing.signals.domains) or ()
    return {rule.name: {each.model: each.score for each in rule.model_scores if each.model and each.score is not None} for rule in rules}


def quality(candidates: Sequence[Candidate], context: RequestContext, domains: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """The scores of the matched domain with the greatest confidence, else the weights of the modelRefs; models without either are missing."""
    best: tuple[float, Mapping[str, float]] | None = None
    for name, scores in domains.items():
        if not scores:
            continue
        found = context.observations.get("domain", name)
        if found is not None and found.truth is Truth.TRUE and (best is None or (found.confidence or 0.0) > best[0]):
            best = found.confidence or 0.0, scores
    if best is not None:
        told = ((candidate.name, best[1].get(candidate.name, best[1].get(candidate.model))) for candidate in candidates)
        if known := {name: score for name, score in told if score is not None}:
            return known
    return {candidate.name: candidate.ref.weight for candidate in candidates if candidate.ref.weight is not None}


def cost(candidates: Sequence[Candidate], input_tokens: int = 0, output_tokens: int | None = None) -> dict[str, float]:
    """With `output_tokens` what this request costs, otherwise the mean of both prices for a million tokens. Models without a price are missing."""
    found = {}
    for candidate in candidates:
        price = candidate.pricing
        if price is not None:
            if output_tokens is None:
                found[candidate.name] = (price.prompt_per_1m + price.completion_per_1m) / 2
            else:
                found[candidate.name] = (price.prompt_per_1m * input_tokens + price.completion_per_1m * output_tokens) / 1e6
    return found


def parameters(candidate: Candidate) -> float | None:
    """The number that `param_size` of the card states (`7B`, `560M`), None when it states none."""
    found = _SIZE.search((candidate.card and candidate.card.param_size) or "")
    return float(found[1]) * _SCALE[(found[2] or "b").lower()] if found else None


def spread(values: Mapping[str, float], candidates: Sequence[Candidate], *, less_is_better: bool = False) -> dict[str, float]:
    """Each value between the least (0) and the greatest (1) of this request; 0.5 for all when they are equal, 0 for a missing one."""
    if not values:
        return {candidate.name: 0.0 for candidate in candidates}
    low, high = min(values.values()), max(values.values())
    spread_out = {model: 0.5 if high == low else (value - low) / (high - low) for model, value in values.items()}
    if less_is_better:
        spread_out = {model: 1 - value for model, value in spread_out.items()}
    return {candidate.name: spread_out.get(candidate.name, 0.0) for candidate in candidates}
