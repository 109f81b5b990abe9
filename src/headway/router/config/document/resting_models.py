"""Provider models that are taken out of service: all of their backends have weight 0."""

from __future__ import annotations

from headway.router.config.document.document import Document


def resting_models(document: Document) -> frozenset[str]:
    """Their names. Models without any backend are not among them."""
    models = (document.providers.models if document.providers else None) or ()
    return frozenset(model.name for model in models if model.backend_refs and not any(ref.weight for ref in model.backend_refs))
