"""CacheStore: what a backend of the response cache does."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from headway.router.stores.nearest import Vector
from headway.router.stores.response_cache.entry import Entry


class CacheStore(Protocol):
    """Entries that are over are never found. A backend that is out of reach finds nothing and keeps nothing; it never raises and never makes
    anyone wait longer than its timeout."""

    backend: str

    def limit(self, max_entries: int, eviction: str) -> None:
        """From now on. `eviction`: fifo, lru, lfu."""
        ...

    async def same(self, partition: str, exact: str, representation: str | None) -> Entry | None:
        """The newest entry of the same request; among those of one representation, or those without a vector, if it is named."""
        ...

    async def nearest(self, partition: str, representation: str, vector: Vector, limit: int) -> Sequence[tuple[Entry, float]]:
        """Entries of the partition whose vectors are of this representation, with their cosine, the most similar first."""
        ...

    async def keep(self, entry: Entry) -> None:
        """It takes the place of an entry of the same request and representation."""
        ...

    async def used(self, entry: Entry) -> None:
        """It was given as an answer: for eviction."""
        ...

    async def get(self, entry_id: str) -> Entry | None: ...

    async def remove(self, entry_ids: Collection[str]) -> int:
        """How many there were."""
        ...

    async def clear(self) -> int: ...

    async def entries(self) -> Sequence[Entry]:
        """All, the newest first."""
        ...

    async def counts(self) -> Mapping[str, int]:
        """Entries by representation ("" for those without a vector)."""
        ...

    async def trouble(self) -> str | None:
        """Why the backend cannot be used now; None when it can."""
        ...

    async def close(self) -> None: ...
