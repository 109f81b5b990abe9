"""The backends of the response cache, as tests see them: settings of the store, and what a restart of the router is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tests.router.plugins.rig import EMBEDDING
from tests.router.stores.redis_process import SERVER, redis_server

BACKENDS = ["memory", "sqlite", *(["redis"] if SERVER else [])]
LASTING = [name for name in BACKENDS if name != "memory"]


@contextmanager
def settings_of(backend: str, **store: Any) -> Iterator[Mapping[str, Any]]:
    """The `global` section."""
    if backend != "redis":
        yield {**EMBEDDING, "stores": {"response_cache": {"backend_type": backend, **store}}}
        return
    with redis_server() as (port, _):
        connection = {"host": "127.0.0.1", "port": port}
        yield {**EMBEDDING, "stores": {"response_cache": {"backend_type": "redis", "redis": {"connection": connection}, **store}}}


def cache(**fields: Any) -> tuple[str, Mapping[str, Any]]:
    return "response_cache", {"enabled": True, **fields}


