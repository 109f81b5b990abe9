"""What only compiling shows: expressions that are none, embeddings that nobody makes. The same code runs when a configuration is loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path as File

from headway.errors import ConfigError
from headway.router.config.diagnostics import Diagnostic, Path
from headway.router.config.document.document import Document
from headway.router.config.document.global_settings import GlobalSettings
from headway.router.config.document.routing import RecipeRouting
from headway.router.config.document.services import RouterReplay
from headway.router.config.document.services import Services as ServiceSettings
from headway.router.config.document.stores import ResponseCacheStore, Stores, VectorStore
from headway.router.config.rules.profiles import decisions, profiles
from headway.router.generation.services import Services
from headway.router.plugins.table import compile_plugins
from headway.router.selection.table import compile_selector
from headway.router.signals.kind import Recipe
from headway.router.signals.table import SIGNAL_KINDS
from headway.router.signals.usage import used_rules

_NOWHERE = File("/nonexistent")  # nothing is opened in it


def compiled_signals(document: Document) -> Iterator[Diagnostic]:
    """Rule by rule, so that each complaint has its line."""
    for profile in profiles(document):
        recipe = Recipe(document, profile.routing, profile.name)
        for kind, rules in used_rules(recipe, SIGNAL_KINDS):
            try:
                kind.compile(rules, recipe)
            except ConfigError as error:
                path = (*profile.path, "signals", kind.collection)
                yield Diagnostic(error.reason, error.message, (*path, *_place(profile.routing, kind.collection, error)))


def compiled_decisions(document: Document) -> Iterator[Diagnostic]:
    """How a decision finds its model, and its plugins. Their stores are opened in memory: what is on disk stays as it is."""
    forgetful = _without_files(document)
    services = Services(_NOWHERE)
    try:
        for profile, path, decision in decisions(document):
            recipe = Recipe(forgetful, profile.routing, profile.name)
            if decision.modelRefs or decision.action is not None:
                place = (*path, "algorithm") if decision.algorithm is not None else path
                yield from _refusal(lambda: compile_selector(decision, recipe, services), place)  # noqa: B023
            yield from _refusal(lambda: compile_plugins(decision, recipe, services), (*path, "plugins") if decision.plugins else path)  # noqa: B023
    finally:
        services.replays.close()


def _refusal(compile: Callable[[], object], path: Path) -> Iterator[Diagnostic]:
    try:
        compile()
    except ConfigError as error:
        yield Diagnostic(error.reason, error.message, path)


def _without_files(document: Document) -> Document:
    settings = document.global_ or GlobalSettings()
    stores, services = settings.stores or Stores(), settings.services or ServiceSettings()
    cache = stores.response_cache or ResponseCacheStore()
    vectors = stores.vector_store or VectorStore()
    replay = services.router_replay or RouterReplay()
    kept = stores.model_copy(
        update={
            "response_cache": cache.model_copy(update={"backend_type": "memory"}),
            "vector_store": vectors.model_copy(update={"metadata_store": "memory"}),
        }
    )
    served = services.model_copy(update={"router_replay": replay.model_copy(update={"store_backend": "memory"})})
    router = settings.router.model_copy(update={"learning": None}) if settings.router else None  # sessions may be in Redis
    return document.model_copy(update={"global_": settings.model_copy(update={"stores": kept, "services": served, "router": router})})


def _place(routing: RecipeRouting, collection: str, error: ConfigError) -> tuple[int, ...]:
    """The item whose name the message quotes."""
    for index, rule in enumerate(getattr(routing.signals, collection) or ()):
        if f'"{rule.name}"' in error.message:
            return (index,)
    return ()
