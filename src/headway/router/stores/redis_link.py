"""RedisLink: a connection to Redis that costs a request little when Redis is gone."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias, TypeVar

import redis.asyncio
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from headway.router.config.document.stores import RedisConnection
from headway.router.metrics.registry import RouterMetrics
from headway.router.stores.redis_address import options_of
from headway.router.stores.redis_rest import Rest

T = TypeVar("T")
Script: TypeAlias = Callable[..., Awaitable[Any]]
Redis: TypeAlias = Any
"""A `redis.asyncio.Redis` that answers in bytes: the library's own types are unions of all that any setting may answer."""


class RedisLink:
    """`run` never raises for a Redis that does not answer and never waits longer than the connection's timeout. After a failure nothing is tried
    for a pause that doubles up to 15 s: only one request in each pause pays for trying. `store` is what it is called in metrics and the log."""

    def __init__(
        self, connection: RedisConnection, clock: Callable[[], float] = time.monotonic, store: str = "", metrics: RouterMetrics | None = None
    ) -> None:
        self._client: Redis = redis.asyncio.Redis(**options_of(connection), retry=Retry(NoBackoff(), 0))
        self._timeout = connection.timeout
        self._rest = Rest(store, metrics, clock)

    @property
    def trouble(self) -> str | None:
        return self._rest.trouble

    async def run(self, ask: Callable[[Redis], Awaitable[T]], otherwise: T) -> T:
        if not self._rest.over:
            self._rest.refused()
            return otherwise
        try:
            async with asyncio.timeout(self._timeout):
                answer = await ask(self._client)
        except (RedisError, OSError, TimeoutError) as error:
            self._rest.failed(error)
            return otherwise
        self._rest.worked()
        return answer

    def script(self, text: str) -> Script:
        """A Lua script: one round trip, nothing of anybody else's happens in between. For use within `run`."""
        registered: Script = self._client.register_script(text)
        return registered

    async def close(self) -> None:
        await self._client.aclose()
