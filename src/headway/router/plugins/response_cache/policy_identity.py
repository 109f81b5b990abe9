"""The identity of what a decision does to its requests."""

from __future__ import annotations

import hashlib

from headway.router.config.document.decisions import Decision
from headway.router.plugins.response_cache.fingerprint import canonical
from headway.router.signals.kind import Recipe

_WITHOUT_EFFECT = ("response_cache", "router_replay", "shadow_dispatch")


def policy_identity(decision: Decision, recipe: Recipe) -> str:
    """SHA-256 over the decision's models, algorithm and the plugins that change requests or answers, and over what the models' names stand for
    at their providers: after a change of any of them earlier answers are not given again. When a decision matches has no part in it."""
    providers = recipe.document.providers
    named = {ref.model for ref in decision.modelRefs or ()}
    models = [model for model in (providers.models if providers else None) or () if not named or model.name in named]
    identity = {
        "models": [ref.model_dump(mode="json") for ref in decision.modelRefs or ()],
        "algorithm": decision.algorithm.model_dump(mode="json", exclude_none=True) if decision.algorithm else None,
        "plugins": [[plugin.type, plugin.configuration] for plugin in decision.plugins or () if plugin.type not in _WITHOUT_EFFECT],
        "providers": [model.model_dump(mode="json", exclude_none=True, exclude={"backend_refs", "reliability", "pricing"}) for model in models],
    }
    return hashlib.sha256(canonical(identity)).hexdigest()
