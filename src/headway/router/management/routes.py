"""All endpoints of the management address, in the order in which they are matched."""

from __future__ import annotations

from headway.router.management import (
    classify,
    compression,
    config,
    discovery,
    health,
    inventory,
    not_here,
    observability,
    preview,
    recipes,
    replays,
    response_caches,
    schema,
    storage,
    systemone,
    vector_stores,
    vectors,
)
from headway.router.management.route import Route

ROUTES: tuple[Route, ...] = (
    *health.ROUTES,
    *preview.ROUTES,
    *config.ROUTES,
    *schema.ROUTES,
    *recipes.ROUTES,
    *classify.ROUTES,
    *vectors.ROUTES,
    *systemone.ROUTES,
    *inventory.ROUTES,
    *response_caches.ROUTES,
    *compression.ROUTES,
    *replays.ROUTES,
    *observability.ROUTES,
    *vector_stores.ROUTES,
    *storage.ROUTES,
    *not_here.ROUTES,
    *discovery.ROUTES,
)
