"""The recipes of a document with their places, and what several rules look up in it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from headway.router.config.diagnostics import Path
from headway.router.config.document.decisions import Decision
from headway.router.config.document.document import Document
from headway.router.config.document.model_cards import ModelCard
from headway.router.config.document.providers import ProviderModel
from headway.router.config.document.routing import RecipeRouting
from headway.router.config.document.rule_tree import RuleNode

DEFAULT_RECIPE = "default"


@dataclass(frozen=True, slots=True)
class Profile:
    """A recipe; `path` is that of its routing. The top-level routing is the recipe `default`."""

    name: str
    path: Path
    routing: RecipeRouting


def profiles(document: Document) -> Iterator[Profile]:
    if document.routing is not None:
        yield Profile(DEFAULT_RECIPE, ("routing",), document.routing)
    for index, recipe in enumerate(document.recipes or ()):
        if recipe.routing is not None:
            yield Profile(recipe.name, ("recipes", index, "routing"), recipe.routing)


def decisions(document: Document) -> Iterator[tuple[Profile, Path, Decision]]:
    for profile in profiles(document):
        for index, decision in enumerate(profile.routing.decisions or ()):
            yield profile, (*profile.path, "decisions", index), decision


def leaves(node: RuleNode | None, path: Path) -> Iterator[tuple[Path, RuleNode]]:
    """The conditions of a tree that stands at `path`, from left to right."""
    if node is None:
        return
    if node.is_leaf:
        yield path, node
    for index, child in enumerate(node.conditions or ()):
        yield from leaves(child, (*path, "conditions", index))


def provider_models(document: Document) -> Mapping[str, ProviderModel]:
    return {model.name: model for model in (document.providers.models if document.providers else None) or ()}


def model_cards(document: Document) -> Mapping[str, ModelCard]:
    return {card.name: card for card in (document.routing.modelCards if document.routing else None) or ()}


def lora_names(document: Document) -> frozenset[str]:
    return frozenset(lora.name for card in model_cards(document).values() for lora in card.loras or ())


def did_you_mean(name: str | None, known: Iterable[str]) -> str | None:
    """The known name that looks most like `name`, as advice; None when none does."""
    near = difflib.get_close_matches(name or "", sorted(known), 1, 0.6)
    return f'Did you mean "{near[0]}"?' if near else None
