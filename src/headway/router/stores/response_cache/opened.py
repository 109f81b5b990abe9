"""The stores of response caches that are open, by their settings."""

from __future__ import annotations

import asyncio
from pathlib import Path

from headway.router.config.document.stores import ResponseCacheStore
from headway.router.metrics.registry import RouterMetrics
from headway.router.stores.response_cache.audit import Audit
from headway.router.stores.response_cache.local import LocalCache
from headway.router.stores.response_cache.sqlite_journal import SqliteJournal
from headway.router.stores.response_cache.store import CacheStore

_FILE = "response-cache.sqlite"


class ResponseCaches:
    """A reload that does not move the store finds it as it was; limits and eviction change in place."""

    def __init__(self, metrics: RouterMetrics | None = None) -> None:
        self._metrics = metrics
        self._open: dict[str, CacheStore] = {}
        self.audit = Audit()
        self.reembedding = asyncio.Lock()  # one run at a time

    def open(self, settings: ResponseCacheStore, state: Path) -> CacheStore:
        key = settings.model_dump_json(include={"backend_type", "redis"})
        if key not in self._open:
            self._open[key] = _made(settings, state, self._metrics)
        store = self._open[key]
        store.limit(settings.max_entries, settings.eviction_policy)
        return store

    @property
    def all(self) -> list[CacheStore]:
        return list(self._open.values())

    async def close(self) -> None:
        for store in self._open.values():
            await store.close()
        self._open.clear()


def _made(settings: ResponseCacheStore, state: Path, metrics: RouterMetrics | None) -> CacheStore:
    if settings.backend_type == "redis":
        from headway.router.stores.redis_link import RedisLink
        from headway.router.stores.response_cache.redis_cache import RedisCache

        return RedisCache(settings.redis, RedisLink(settings.redis.connection, store="response_cache", metrics=metrics))
    return LocalCache(SqliteJournal(state / _FILE) if settings.backend_type == "sqlite" else None)
