"""Which deployment makes the vectors of a store: the response cache, documents."""

from __future__ import annotations

from headway.errors import ConfigError
from headway.router.embedding.source import required_embedding
from headway.router.signals.kind import Recipe

_KINDS = frozenset({"bert", "qwen3", "gemma", "mmbert", "multimodal", "remote"})
"""Names that vllm-sr gives to its own embedding models; here they all mean the binding `embedding`."""


def store_embedding(named: str | None, recipe: Recipe, store: str) -> str:
    """`embedding_model` of `global.stores.<store>` if it names a deployment, else the recipe's binding `embedding`. Raises ConfigError."""
    if named is None or named in _KINDS:
        return required_embedding(recipe, f"the store {store}")
    if named not in (recipe.catalog.deployments or {}):
        raise ConfigError(
            f'"{named}" is no deployment',
            param=f"global.stores.{store}.embedding_model",
            fix="Name a deployment of global.model_catalog.deployments, or leave it out to use the binding `embedding`.",
        )
    return named
