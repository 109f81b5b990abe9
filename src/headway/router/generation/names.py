"""What a model name means on the public address: a recipe to route with, or a provider's model to pass through to."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headway.errors import RequestError
from headway.router.config.document.document import Document
from headway.router.generation.generation import ResolvedName

AUTO_NAMES = ("vllm-sr/auto", "auto", "MoM")
DEFAULT_RECIPE = "default"
_OWNER_ROUTER, _OWNER_BACKEND = "vllm-semantic-router", "upstream-endpoint"


@dataclass(frozen=True, slots=True)
class ModelNames:
    """Made once per generation. Entrypoints win over the aliases, the aliases over provider models of the same name."""

    meanings: Mapping[str, ResolvedName]
    entries: Sequence[Mapping[str, Any]]

    def resolve(self, model: str) -> ResolvedName:
        found = self.meanings.get(model)
        if found is not None:
            return found
        if not model:
            raise RequestError(
                "model is required",
                param="model",
                reason="model_required",
                fix=f'Use "{AUTO_NAMES[0]}" to let the router choose.',
            )
        shown = model if len(model) <= 100 else model[:100] + "..."
        raise RequestError(
            f'model "{shown}" is not available',
            param="model",
            reason="model_not_available",
            fix="GET /v1/models lists the names that are.",
        )

    def listed(self) -> Sequence[Mapping[str, Any]]:
        return self.entries


def compile_names(document: Document, created: int | None = None) -> ModelNames:
    """The names of `document`, which has been checked: no name means two things."""
    meanings: dict[str, ResolvedName] = {}
    for provider in (document.providers and document.providers.models) or ():
        if provider.name:
            meanings[provider.name] = ResolvedName(model=provider.name)
    backends = list(meanings)
    for card in (document.routing and document.routing.modelCards) or ():
        for lora in card.loras or ():
            if lora.name and card.name in backends:
                meanings.setdefault(lora.name, ResolvedName(model=card.name, lora=lora.name))
                backends.append(lora.name)
    virtual = dict.fromkeys(AUTO_NAMES, (DEFAULT_RECIPE, "The router chooses a model for each request."))
    about = {recipe.name: recipe.description for recipe in document.recipes or ()}
    for entry in document.entrypoints or ():
        for name in entry.model_names or ():
            if entry.api != "systemone" and entry.recipe:
                virtual[name] = entry.recipe, about.get(entry.recipe) or f'Routed by the recipe "{entry.recipe}".'
    meanings.update({name: ResolvedName(recipe=recipe) for name, (recipe, _) in virtual.items()})
    stamp = int(time.time()) if created is None else created
    entries = [_virtual(name, stamp, recipe, text) for name, (recipe, text) in virtual.items()]
    router = document.global_ and document.global_.router
    if router and router.list_backend_models:
        described = {card.name: card.description for card in (document.routing and document.routing.modelCards) or ()}
        entries += [_passthrough(name, stamp, described.get(name)) for name in backends if name not in virtual]
    return ModelNames(meanings, tuple(entries))


def _virtual(name: str, created: int, recipe: str, description: str) -> dict[str, Any]:
    routing = {"resolution": "virtual", "selectable": True, "default_route": name == AUTO_NAMES[0], "recipe": recipe}
    return _entry(name, created, _OWNER_ROUTER, description, routing)


def _passthrough(name: str, created: int, description: str | None) -> dict[str, Any]:
    routing = {"resolution": "passthrough", "selectable": True, "default_route": False}
    return _entry(name, created, _OWNER_BACKEND, description or "Answered by this model, without routing.", routing)


def _entry(name: str, created: int, owner: str, description: str, routing: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": name,
        "object": "model",
        "created": created,
        "owned_by": owner,
        "description": description,
        "routing": routing,
    }
