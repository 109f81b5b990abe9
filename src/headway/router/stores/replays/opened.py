"""The replay store that is open."""

from __future__ import annotations

from pathlib import Path

from headway.router.config.document.document import Document
from headway.router.config.document.services import RouterReplay
from headway.router.stores.replays.store import ReplayStore

MAX_RECORDS = 10_000
_FILE = "replays.sqlite"


def replay_settings(document: Document) -> RouterReplay:
    services = document.global_.services if document.global_ else None
    return (services.router_replay if services else None) or RouterReplay()


class OpenReplays:
    """Opened when a configuration first needs it; a reload finds it as it was."""

    def __init__(self) -> None:
        self._open: dict[str, ReplayStore] = {}
        self.current: ReplayStore | None = None

    def open(self, document: Document, state: Path) -> ReplayStore:
        settings = replay_settings(document)
        limit = MAX_RECORDS if settings.max_records is None else settings.max_records
        if settings.store_backend not in self._open:
            path = state / _FILE if settings.store_backend == "sqlite" else None
            self._open[settings.store_backend] = ReplayStore(path, limit, settings.ttl_seconds, settings.async_writes)
        self.current = self._open[settings.store_backend]
        self.current.limit(limit, settings.ttl_seconds)
        return self.current

    def close(self) -> None:
        for store in self._open.values():
            store.close()
        self._open.clear()
        self.current = None
