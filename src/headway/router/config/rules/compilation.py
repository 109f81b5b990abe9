"""What only compiling shows: expressions that are none, embeddings that nobody makes. The same code runs when a configuration is loaded."""

from __future__ import annotations

from collections.abc import Iterator

from headway.errors import ConfigError
from headway.router.config.diagnostics import Diagnostic
from headway.router.config.document.document import Document
from headway.router.config.document.routing import RecipeRouting
from headway.router.config.rules.profiles import profiles
from headway.router.signals.kind import Recipe
from headway.router.signals.table import SIGNAL_KINDS
from headway.router.signals.usage import used_rules


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


def _place(routing: RecipeRouting, collection: str, error: ConfigError) -> tuple[int, ...]:
    """The item whose name the message quotes."""
    for index, rule in enumerate(getattr(routing.signals, collection) or ()):
        if f'"{rule.name}"' in error.message:
            return (index,)
    return ()
