"""Stored vectors after a change of the embedding model: how many there are, and making them again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from headway.router.deployments.calls import Unanswered
from headway.router.management.answer import Answer, ManagementError
from headway.router.management.call import Call
from headway.router.management.models import calls
from headway.router.management.response_caches import cache_settings
from headway.router.management.route import Route
from headway.router.plugins.models import embedded
from headway.router.plugins.store_embedding import store_embedding
from headway.router.stores.reembedding import reembed_cache, reembed_documents
from headway.router.stores.vectors.ingestion import Embed
from headway.router.stores.vectors.opened import vector_settings


async def representations(call: Call) -> Answer:
    """Stored vectors by the representation that made them."""
    services, document = call.state.services, call.state.generations.current.document
    cache = services.response_caches.open(cache_settings(call), services.state)
    stores = services.vector_stores.open(document, services.state)
    counts = {name: count for name, count in (await cache.counts()).items() if name}
    return Answer({"response_cache": counts, "vector_stores": dict(stores.counts()) if stores else {}})


async def reembed(call: Call) -> Answer:
    """One run at a time. It answers when everything is done."""
    running = call.state.services.response_caches.reembedding
    if running.locked():
        raise ManagementError("CONFLICT", "vectors are being made again already", 409)
    async with running:
        services = call.state.services
        with call.state.generations.use() as generation:
            cache = services.response_caches.open(cache_settings(call), services.state)
            stores = services.vector_stores.open(generation.document, services.state)
            caches: list[dict[str, Any]] = []
            entries = await cache.entries()
            for name, recipe in generation.recipes.items():
                mine = [entry for entry in entries if entry.recipe == name]
                if any(entry.vector is not None for entry in mine):
                    deployment = store_embedding(cache_settings(call).embedding_model, recipe.recipe, "response_cache")
                    caches.append({"recipe": name, **asdict(await reembed_cache(cache, mine, _embed(call, deployment)))})
            documents = None
            if stores is not None and stores.counts():
                default = generation.recipes["default"].recipe
                deployment = store_embedding(vector_settings(generation.document).embedding_model, default, "vector_store")
                documents = asdict(await reembed_documents(stores, _embed(call, deployment)))
        return Answer({"response_cache": caches, "vector_stores": documents})


def _embed(call: Call, deployment: str) -> Embed:
    async def embed(texts: Sequence[str]) -> Any:
        with call.state.generations.use() as generation, calls(generation) as asking:
            made = await embedded(asking, deployment, texts)
        if isinstance(made, Unanswered):
            return made
        return (made.vectors, made.representation) if made.read_all else Unanswered("input_limit")

    return embed


ROUTES = (
    Route("GET", "/api/v1/storage/representations", representations, "data.read", "Stored vectors by the model that made them."),
    Route("POST", "/api/v1/storage/reembed", reembed, "data.write", "Make vectors of other models again."),
)
