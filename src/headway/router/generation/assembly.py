"""From a checked document to a generation that can answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from headway.router.config.document.document import Document
from headway.router.config.document.resting_models import resting_models
from headway.router.config.document.routing import RecipeRouting, Routing
from headway.router.decisions.engine import compile_decisions
from headway.router.deployments.deployments import RuntimeDeployments
from headway.router.deployments.usage import asked_by
from headway.router.generation.document_hash import document_hash
from headway.router.generation.generation import CompiledRecipe, Generation, Selector
from headway.router.generation.names import DEFAULT_RECIPE, compile_names
from headway.router.generation.services import Services
from headway.router.listener.front import compile_front
from headway.router.plugins.plugin import Plugin
from headway.router.plugins.table import compile_plugins
from headway.router.projections.compiled import compile_projections
from headway.router.selection.table import compile_selector
from headway.router.signals.extraction import compile_extraction
from headway.router.signals.kind import Recipe
from headway.router.upstream.upstreams import compile_upstreams


@dataclass(frozen=True, slots=True)
class Places:
    """Where a generation stands: its number in this process, its version in the history of configurations, the variables it may read."""

    number: int
    version: int
    environment: Mapping[str, str]


def assemble(document: Document, deployments: RuntimeDeployments, services: Services, places: Places) -> Generation:
    """Compile every part. Nothing is started here; raises ConfigError for what only compiling shows."""
    recipes = {recipe.name: _compiled(replace(recipe, vectors=services.vectors), deployments, services) for recipe in recipes_of(document)}
    return Generation(
        number=places.number,
        version=places.version,
        document=document,
        config_hash=document_hash(document),
        names=compile_names(document),
        recipes=recipes,
        upstreams=compile_upstreams(document, services, places.environment),
        deployments=deployments,
        front=compile_front(document, places.environment),
        services=services,
        resting=resting_models(document),
    )


def used_deployments(generation: Generation) -> frozenset[str]:
    """Every deployment that some part of it asks."""
    found: set[str] = set()
    for recipe in generation.recipes.values():
        plugins = [plugin for each in recipe.plugins.values() for plugin in each]
        found |= asked_by([recipe.extraction, *recipe.selectors.values(), *plugins])
    return frozenset(found)


def recipes_of(document: Document) -> Sequence[Recipe]:
    """The top-level routing is the recipe `default`."""
    found = [Recipe(document, document.routing or Routing(), DEFAULT_RECIPE)]
    return [*found, *(Recipe(document, each.routing or RecipeRouting(), each.name or "") for each in document.recipes or ())]


def _compiled(recipe: Recipe, deployments: RuntimeDeployments, services: Services) -> CompiledRecipe:
    selectors: dict[str, Selector] = {}
    plugins: dict[str, Sequence[Plugin]] = {}
    for decision in recipe.routing.decisions or ():
        name = decision.name or ""
        if decision.modelRefs or decision.action is not None:
            selectors[name] = compile_selector(decision, recipe, services)
        plugins[name] = compile_plugins(decision, recipe, services)
    return CompiledRecipe(
        recipe=recipe,
        extraction=compile_extraction(recipe, deployments),
        projections=compile_projections(recipe),
        decisions=compile_decisions(recipe),
        selectors=selectors,
        plugins=plugins,
        default_model=_default_model(recipe.document),
    )


def _default_model(document: Document) -> str | None:
    defaults = document.providers.defaults if document.providers else None
    return defaults.model if defaults else None

