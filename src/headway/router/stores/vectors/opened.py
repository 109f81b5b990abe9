"""The vector stores that are open."""

from __future__ import annotations

from pathlib import Path

from headway.router.config.document.document import Document
from headway.router.config.document.stores import VectorStore
from headway.router.stores.vectors.ingestion import Ingestion
from headway.router.stores.vectors.store import VectorStores

_FILE = "vector-stores.sqlite"


def vector_settings(document: Document) -> VectorStore:
    stores = document.global_.stores if document.global_ else None
    return (stores.vector_store if stores else None) or VectorStore()


class OpenVectorStores:
    """One database in a place, opened when a configuration first switches it on; a reload finds it as it was."""

    def __init__(self) -> None:
        self._open: dict[Path | None, VectorStores] = {}
        self._ingestion: dict[int, Ingestion] = {}
        self._patience = 0.0

    def open(self, document: Document, state: Path) -> VectorStores | None:
        """None while `stores.vector_store.enabled` is false."""
        settings = vector_settings(document)
        if not settings.enabled:
            return None
        path = None
        if settings.metadata_store == "sqlite":
            path = (document.place(settings.file_storage_dir) if settings.file_storage_dir else state) / _FILE
        if path not in self._open:
            self._open[path] = VectorStores(path)
        self._patience = settings.ingestion_drain_timeout_seconds
        return self._open[path]

    def ingestion(self, stores: VectorStores, settings: VectorStore) -> Ingestion:
        """Of these stores; to be called on the event loop that reads files."""
        if id(stores) not in self._ingestion:
            self._ingestion[id(stores)] = Ingestion(stores, settings.ingestion_workers, settings.memory.max_entries_per_store)
        return self._ingestion[id(stores)]

    async def close(self) -> None:
        for ingestion in self._ingestion.values():
            await ingestion.drain(self._patience)
        for stores in self._open.values():
            stores.close()
        self._open.clear()
