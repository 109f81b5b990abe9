"""RedisLink: a connection to Redis that costs a request little when Redis is gone."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias, TypeVar

import redis.asyncio
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from headway.router.config.document.stores import RedisConnection

_LOG = logging.getLogger(__name__)
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 15.0  # seconds
T = TypeVar("T")
Redis: TypeAlias = Any
"""A `redis.asyncio.Redis` that answers in bytes: the library's own types are unions of all that any setting may answer."""


class RedisLink:
    """`run` never raises for a Redis that does not answer and never waits longer than the connection's timeout. After a failure nothing is tried
    for a pause that doubles up to 15 s: only one request in each pause pays for trying."""

    def __init__(self, connection: RedisConnection, clock: Callable[[], float] = time.monotonic) -> None:
        tls = connection.tls
        files: dict[str, Any] = {"ssl_ca_certs": tls.ca_file, "ssl_certfile": tls.cert_file, "ssl_keyfile": tls.key_file} if tls.enabled else {}
        self._client: Redis = redis.asyncio.Redis(
            host=connection.host,
            port=connection.port,
            db=connection.database,
            password=connection.password,
            socket_timeout=connection.timeout,
            socket_connect_timeout=connection.timeout,
            retry=Retry(NoBackoff(), 0),
            ssl=tls.enabled,
            **files,
        )
        self._timeout = connection.timeout
        self._clock = clock
        self._pause = _FIRST_PAUSE
        self._rests_until = 0.0
        self.trouble: str | None = None

    async def run(self, ask: Callable[[Redis], Awaitable[T]], otherwise: T) -> T:
        if self._clock() < self._rests_until:
            return otherwise
        try:
            async with asyncio.timeout(self._timeout):
                answer = await ask(self._client)
        except (RedisError, OSError, TimeoutError) as error:
            self._failed(error)
            return otherwise
        if self.trouble is not None:
            _LOG.info("Redis answers again")
        self._pause, self.trouble = _FIRST_PAUSE, None
        return answer

    async def close(self) -> None:
        await self._client.aclose()

    def _failed(self, error: BaseException) -> None:
        if self.trouble is None:
            _LOG.warning("Redis does not answer: %s", type(error).__name__)
        self.trouble = f"Redis does not answer: {type(error).__name__}"
        self._rests_until = self._clock() + self._pause
        self._pause = min(self._pause * 2, _LONGEST_PAUSE)
