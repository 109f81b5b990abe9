"""The replay store that is open."""

from __future__ import annotations

from pathlib import Path

from headway.router.config.document.document import Document
from headway.router.config.document.services import ReplayRedis, RouterReplay
from headway.router.metrics.registry import RouterMetrics
from headway.router.stores.replays.keeping import Replays
from headway.router.stores.replays.store import ReplayStore

MAX_RECORDS = 10_000
_FILE = "replays.sqlite"


def replay_settings(document: Document) -> RouterReplay:
    services = document.global_.services if document.global_ else None
    return (services.router_replay if services else None) or RouterReplay()


class OpenReplays:
    """Opened when a configuration first needs it; a reload finds it as it was."""

    def __init__(self, metrics: RouterMetrics | None = None) -> None:
        self._metrics = metrics
        self._open: dict[str, Replays] = {}
        self.current: Replays | None = None

    def open(self, document: Document, state: Path) -> Replays:
        settings = replay_settings(document)
        limit = MAX_RECORDS if settings.max_records is None else settings.max_records
        name = settings.model_dump_json(include={"store_backend", "redis"}) if settings.store_backend == "redis" else settings.store_backend
        if name not in self._open:
            self._open[name] = self._made(settings, limit, state)
        self.current = self._open[name]
        self.current.limit(limit, settings.ttl_seconds)
        return self.current

    def _made(self, settings: RouterReplay, limit: int, state: Path) -> Replays:
        if settings.store_backend == "redis":
            from headway.router.stores.replays.redis_store import RedisReplays

            return RedisReplays(settings.redis or ReplayRedis(), limit, settings.ttl_seconds, self._metrics)
        path = state / _FILE if settings.store_backend == "sqlite" else None
        return ReplayStore(path, limit, settings.ttl_seconds, settings.async_writes)

    def close(self) -> None:
        for store in self._open.values():
            store.close()
        self._open.clear()
        self.current = None
