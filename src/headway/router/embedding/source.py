"""Which deployment makes vectors for a recipe."""

from __future__ import annotations

from headway.errors import ConfigError
from headway.router.config.document.model_catalog import EmbeddingConfig, EmbeddingModels
from headway.router.deployments.calls import EMBEDDING_ENDPOINT
from headway.router.signals.kind import Recipe

_CONSUMER = "embedding"


def embedding_deployment(recipe: Recipe) -> str | None:
    """The binding of the recipe, else of the catalogue, else the service of `embeddings.semantic.endpoint`; None when there is none."""
    catalog = recipe.catalog
    bound = (recipe.routing.model_bindings or {}).get(_CONSUMER) or (catalog.bindings or {}).get(_CONSUMER)
    if bound is not None and bound.deployment:
        return bound.deployment
    semantic = _semantic(recipe)
    return EMBEDDING_ENDPOINT if semantic is not None and semantic.endpoint is not None else None


def required_embedding(recipe: Recipe, wanted_by: str) -> str:
    """Raises ConfigError when nothing makes vectors."""
    found = embedding_deployment(recipe)
    if found is None:
        raise ConfigError(
            f"{wanted_by} compares texts by their vectors, and nothing makes vectors",
            param="global.model_catalog.bindings.embedding",
            fix="Bind `embedding` to a deployment, or set global.model_catalog.embeddings.semantic.endpoint.",
        )
    return found


def embedding_config(recipe: Recipe) -> EmbeddingConfig:
    semantic = _semantic(recipe)
    return (semantic.embedding_config if semantic else None) or EmbeddingConfig()


def _semantic(recipe: Recipe) -> EmbeddingModels | None:
    embeddings = recipe.catalog.embeddings
    return embeddings.semantic if embeddings else None
