"""ResponseStores: the stores of responses, which outlive the configurations that use them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.router.config.document.services import ResponseAPI, ResponseAPIRedis
from headway.router.metrics.registry import RouterMetrics
from headway.router.protocols.responses.store import MemoryStore, ResponseStore

if TYPE_CHECKING:
    from headway.router.protocols.responses.redis_store import RedisStore


class ResponseStores:
    """One in memory, and one for each Redis that a configuration named. What is in a store stays when a reload changes its bounds."""

    def __init__(self, metrics: RouterMetrics | None = None) -> None:
        self._metrics = metrics
        self._memory: MemoryStore | None = None
        self._redis: dict[str, RedisStore] = {}

    def of(self, settings: ResponseAPI) -> ResponseStore:
        if settings.store_backend == "redis":
            redis = settings.redis or ResponseAPIRedis()
            identity = f"{redis.model_dump_json()} {settings.ttl_seconds}"
            if identity not in self._redis:
                from headway.router.protocols.responses.redis_store import connect

                self._redis[identity] = connect(redis, settings.ttl_seconds, self._metrics)
            return self._redis[identity]
        if self._memory is None:
            self._memory = MemoryStore(settings.max_responses, settings.ttl_seconds)
        records = self._memory.records
        records.most, records.ttl_seconds = settings.max_responses, settings.ttl_seconds
        return self._memory

    async def close(self) -> None:
        for store in self._redis.values():
            await store.close()
