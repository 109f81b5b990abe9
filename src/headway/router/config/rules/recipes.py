"""Rules about recipes and the public names that lead to them."""

from __future__ import annotations

from collections.abc import Iterator

from headway.router.config.diagnostics import Diagnostic, Path
from headway.router.config.document.document import Document
from headway.router.config.document.routing import RecipeRouting
from headway.router.config.rules.listeners import public_names
from headway.router.config.rules.profiles import DEFAULT_RECIPE, did_you_mean, model_cards, provider_models

_GLOBAL = "@global"


def recipe_names(document: Document) -> Iterator[Diagnostic]:
    """Unique, not `@global`. `default` is the top-level routing; a recipe of that name may stand in for one that says nothing."""
    seen = {DEFAULT_RECIPE} if _says_something(document.routing) else set()
    for index, recipe in enumerate(document.recipes or ()):
        path: Path = ("recipes", index, "name")
        if recipe.name == _GLOBAL:
            yield Diagnostic("name_reserved", f'"{_GLOBAL}" is reserved', path)
        if recipe.name in seen:
            also = " (the top-level routing is the recipe default)" if recipe.name == DEFAULT_RECIPE else ""
            yield Diagnostic("name_repeated", f'recipe "{recipe.name}" stands there twice{also}', path)
        seen.add(recipe.name)


def _says_something(routing: RecipeRouting | None) -> bool:
    return routing is not None and any(getattr(routing, name) for name in RecipeRouting.model_fields if name != "fallback")


def entrypoints(document: Document) -> Iterator[Diagnostic]:
    """The recipe exists; a public name leads to one place, and is no backend's name."""
    recipes = {DEFAULT_RECIPE, *(recipe.name for recipe in document.recipes or ())}
    taken: dict[tuple[str, str], int] = {}
    backends = {"chat": _chat_names(document), "systemone": _native_names(document)}
    for index, entry in enumerate(document.entrypoints or ()):
        path: Path = ("entrypoints", index)
        api = entry.api or "chat"
        if entry.recipe not in recipes:
            message = f'entrypoint leads to recipe "{entry.recipe}", which is not there'
            yield Diagnostic("recipe_undeclared", message, (*path, "recipe"), did_you_mean(entry.recipe, recipes))
        for at, name in enumerate(entry.model_names):
            if taken.get((api, name), index) != index:
                yield Diagnostic("name_repeated", f'"{name}" leads to two recipes', (*path, "model_names", at))
            taken.setdefault((api, name), index)
            if name in backends[api]:
                message = f'"{name}" is the name of a model already'
                yield Diagnostic("name_ambiguous", message, (*path, "model_names", at), "Give the entrypoint a name of its own")
        if api == "systemone":
            message = "recipes for native System One requests are not supported by Headway: they need the cascade algorithm"
            yield Diagnostic("not_supported", message, path, "Grant the model itself: listeners[].systemone.models")


def _chat_names(document: Document) -> set[str]:
    names: set[str] = set()
    for model in provider_models(document).values():
        if model.api_format != "systemone":
            names |= {model.name, model.provider_model_id or "", *(model.external_model_ids or {}).values()}
    names |= {lora.name for card in model_cards(document).values() for lora in card.loras or ()}
    return names - {""}


def _native_names(document: Document) -> set[str]:
    return {*public_names(document), *(name for name, model in provider_models(document).items() if model.api_format == "systemone")}
