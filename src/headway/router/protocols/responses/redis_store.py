"""Responses in Redis, shared by several routers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import orjson

from headway.router.config.document.services import ResponseAPIRedis
from headway.router.metrics.registry import RouterMetrics
from headway.router.protocols.responses.store import StoreUnavailableError
from headway.router.stores.redis_address import connection_of
from headway.router.stores.redis_link import Redis, RedisLink
from headway.wire.responses.records import Record

_SILENCE = object()


class RedisStore:
    """Redis forgets the records by itself."""

    def __init__(self, link: RedisLink, ttl_seconds: int, prefix: str) -> None:
        self._link, self._ttl, self._prefix = link, ttl_seconds, prefix

    async def put(self, name: str, record: Record) -> None:
        await self._asked(lambda redis: redis.set(self._prefix + name, orjson.dumps(record), ex=self._ttl or None))

    async def get(self, name: str) -> Record | None:
        raw = await self._asked(lambda redis: redis.get(self._prefix + name))
        if raw is None:
            return None
        found: Record = orjson.loads(raw)
        return found

    async def delete(self, name: str) -> bool:
        return bool(await self._asked(lambda redis: redis.delete(self._prefix + name)))

    async def close(self) -> None:
        await self._link.close()

    async def _asked(self, ask: Callable[[Redis], Awaitable[Any]]) -> Any:
        answer = await self._link.run(ask, _SILENCE)
        if answer is _SILENCE:
            raise StoreUnavailableError("the store of responses does not answer", fix="Try again later.")
        return answer


def connect(settings: ResponseAPIRedis, ttl_seconds: int, metrics: RouterMetrics | None = None) -> RedisStore:
    """The connection is made with the first request."""
    link = RedisLink(connection_of(settings), store="responses", metrics=metrics)
    return RedisStore(link, ttl_seconds, settings.key_prefix)
