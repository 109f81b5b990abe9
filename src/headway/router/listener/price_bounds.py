"""What a request can cost at most per token, before it is known which model will answer it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from headway.router.config.document.decisions import Decision
from headway.router.config.document.document import Document
from headway.router.config.document.routing import RecipeRouting, Routing
from headway.router.listener.prices import Price
from headway.router.selection.candidates import candidates_of
from headway.router.signals.kind import Recipe

_CASCADE = "confidence"
_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class PriceBound:
    """Per million tokens, in one currency."""

    prompt: float = 0.0
    completion: float = 0.0

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        return (prompt_tokens * self.prompt + completion_tokens * self.completion) / _MILLION


FREE = PriceBound()
BoundsByCurrency = Mapping[str, PriceBound]


def bound_of(price: Price) -> PriceBound:
    """Whatever a backend's cache does with the prompt, its tokens cost no more than this."""
    return PriceBound(max(price.prompt, price.cached, price.cache_write, price.cache_write_1h), price.completion)


def compile_price_bounds(document: Document, prices: Mapping[str, Price]) -> Mapping[str, BoundsByCurrency]:
    """By recipe (the top-level routing is `default`): the dearest of its models by each rate. All models of a cascade may be asked, so they add up."""
    if not prices:
        return {}
    named = [(each.name or "", each.routing or RecipeRouting()) for each in document.recipes or ()]
    routings: list[tuple[str, Routing | RecipeRouting]] = [("default", document.routing or Routing()), *named]
    return {name: _of_recipe(Recipe(document, routing, name), prices) for name, routing in routings}


def _of_recipe(recipe: Recipe, prices: Mapping[str, Price]) -> BoundsByCurrency:
    defaults = recipe.document.providers.defaults if recipe.document.providers else None
    sets: list[tuple[bool, Sequence[str]]] = [(False, [defaults.model or ""])] if defaults else []
    sets += [(_adds_up(decision, recipe), list(_models(decision, recipe))) for decision in recipe.routing.decisions or ()]
    found: dict[str, PriceBound] = {}
    for currency in {price.currency for price in prices.values()}:
        bounds = [_of_models([prices[model] for model in models if model in prices], currency, adds) for adds, models in sets]
        found[currency] = _dearest(bounds)
    return found


def _models(decision: Decision, recipe: Recipe) -> Iterator[str]:
    if decision.action is not None:
        yield decision.action.destination
    yield from (candidate.model for candidate in candidates_of(decision, recipe))


def _of_models(prices: Sequence[Price], currency: str, adds: bool) -> PriceBound:
    bounds = [bound_of(price) for price in prices if price.currency == currency]
    return PriceBound(sum(bound.prompt for bound in bounds), sum(bound.completion for bound in bounds)) if adds else _dearest(bounds)


def _dearest(bounds: Iterable[PriceBound]) -> PriceBound:
    found = list(bounds)
    return PriceBound(max((bound.prompt for bound in found), default=0.0), max((bound.completion for bound in found), default=0.0))


def _adds_up(decision: Decision, recipe: Recipe) -> bool:
    router = recipe.document.global_.router if recipe.document.global_ else None
    shared = router.model_selection if router else None
    algorithm = decision.algorithm.type if decision.algorithm is not None else shared.method if shared is not None else None
    return algorithm == _CASCADE
