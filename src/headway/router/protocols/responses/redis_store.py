"""Responses in Redis, shared by several routers."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable
from typing import Any, TypeVar

import orjson
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from headway.router.config.document.services import ResponseAPIRedis
from headway.router.protocols.responses.store import Record, StoreUnavailableError

T = TypeVar("T")
_PREFIX = "headway:response:"
_SECONDS = 2.0


class RedisStore:
    """Redis forgets the records by itself. What does not answer within two seconds is unavailable."""

    def __init__(self, client: Any, ttl_seconds: int, prefix: str = _PREFIX) -> None:
        self._client, self._ttl, self._prefix = client, ttl_seconds, prefix

    async def put(self, name: str, record: Record) -> None:
        await _asked(self._client.set(self._prefix + name, orjson.dumps(record), ex=self._ttl))

    async def get(self, name: str) -> Record | None:
        raw = await _asked(self._client.get(self._prefix + name))
        if raw is None:
            return None
        found: Record = orjson.loads(raw)
        return found

    async def delete(self, name: str) -> bool:
        return bool(await _asked(self._client.delete(self._prefix + name)))

    async def close(self) -> None:
        await self._client.aclose()


def connect(settings: ResponseAPIRedis, ttl_seconds: int) -> RedisStore:
    """The connection is made with the first request."""
    host, _, port = (settings.address or "127.0.0.1:6379").rpartition(":")
    client = Redis(
        host=host or "127.0.0.1",
        port=int(port) if port.isdecimal() else 6379,
        db=settings.db or 0,
        password=settings.password,
        ssl=bool(settings.tls_enabled),
        ssl_certfile=settings.tls_cert_path,
        ssl_keyfile=settings.tls_key_path,
        ssl_ca_certs=settings.tls_ca_path,
        ssl_min_version=ssl.TLSVersion.TLSv1_2 if settings.tls_enabled else None,
        max_connections=settings.pool_size or 64,
        socket_timeout=_SECONDS,
        socket_connect_timeout=_SECONDS,
        retry=Retry(NoBackoff(), 1),
    )
    return RedisStore(client, ttl_seconds, settings.key_prefix or _PREFIX)


async def _asked(call: Awaitable[T]) -> T:
    try:
        return await call
    except (RedisError, OSError, TimeoutError) as error:
        raise StoreUnavailableError(f"the store of responses does not answer ({type(error).__name__})", fix="Try again later.") from None
