"""Admission: whether a caller may ask for a model at all."""

from __future__ import annotations

from headway.router.listener.errors import ModelNotAllowedError
from headway.router.listener.front import ListenerRules
from headway.router.listener.key_ring import Key


def require_model_allowed(model: str, rules: ListenerRules, key: Key | None) -> None:
    """The exact name in the request must be granted by the listener and by the key. Raises ModelNotAllowedError."""
    if not model_allowed(model, rules, key):
        shown = model if len(model) <= 100 else model[:100] + "..."
        raise ModelNotAllowedError(f'model "{shown}" is not allowed here', param="model", fix="GET /v1/models lists the names that are.")


def model_allowed(model: str, rules: ListenerRules, key: Key | None) -> bool:
    if rules.models is not None and model not in rules.models:
        return False
    return key is None or key.models is None or model in key.models
