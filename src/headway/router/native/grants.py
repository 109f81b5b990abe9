"""Grants: which System One models each listener offers, and what they are behind it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headway.errors import RequestError
from headway.router.config.document.document import Document
from headway.router.deployments.usage import native_models

_ALIASES = ("jev-latest", "jev-preview")
"""What System One clients send unless they are told otherwise: the first model that is granted."""


@dataclass(frozen=True, slots=True)
class Grants:
    """`models`: public name -> deployment. `longest` is the most seconds that a call may take."""

    models: Mapping[str, str] = field(default_factory=dict)
    longest: float | None = None

    def deployment(self, model: object) -> tuple[str, str]:
        """Public name and deployment. A body need not name the only model that there is. Raises RequestError."""
        if model is not None and not isinstance(model, str):
            raise RequestError("model must be the name of a model", param="model")
        if model in self.models:
            return str(model), self.models[str(model)]
        if self.models and (model in _ALIASES or (model is None and len(self.models) == 1)):
            return next(iter(self.models.items()))
        if model is None:
            raise RequestError("model is required", reason="model_required", param="model", fix=f"Granted are: {self._names()}.")
        raise RequestError(f'model "{model[:100]}" is not available', reason="model_not_found", param="model", fix=f"Granted are: {self._names()}.")

    def _names(self) -> str:
        return ", ".join(list(self.models)[:10]) or "none"


def grants_of(document: Document) -> Mapping[str, Grants]:
    """By the name of the listener."""
    named = {name: each.name for name, each in native_models(document).items()}
    for model in (document.providers.models if document.providers else None) or ():
        if model.deployment:
            named[model.name] = model.deployment
    found: dict[str, Grants] = {}
    for listener in document.listeners or ():
        granted = listener.systemone
        if granted is not None:
            models = {name: named[name] for name in granted.models if name in named}
            found[listener.name] = Grants(models, granted.max_deadline_ms / 1000 if granted.max_deadline_ms else None)
    return found
