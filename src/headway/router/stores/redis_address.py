"""Where a store's Redis is, by the settings that give it as an address."""

from __future__ import annotations

from typing import Any

from headway.router.config.document.services import ResponseAPIRedis
from headway.router.config.document.stores import RedisConnection, RedisTLS


def options_of(connection: RedisConnection) -> dict[str, Any]:
    """Of a client of redis-py, whose every wait then has an end."""
    tls = connection.tls
    files: dict[str, Any] = {"ssl_ca_certs": tls.ca_file, "ssl_certfile": tls.cert_file, "ssl_keyfile": tls.key_file} if tls.enabled else {}
    return {
        "host": connection.host,
        "port": connection.port,
        "db": connection.database,
        "password": connection.password,
        "socket_timeout": connection.timeout,
        "socket_connect_timeout": connection.timeout,
        "ssl": tls.enabled,
        **files,
    }


def connection_of(settings: ResponseAPIRedis) -> RedisConnection:
    host, _, port = settings.address.rpartition(":")
    return RedisConnection(
        host=host,
        port=int(port),
        database=settings.db,
        password=settings.password,
        timeout=settings.read_timeout,
        tls=RedisTLS(enabled=settings.tls_enabled, cert_file=settings.tls_cert_path, key_file=settings.tls_key_path, ca_file=settings.tls_ca_path),
    )
