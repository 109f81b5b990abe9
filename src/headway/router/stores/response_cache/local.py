"""LocalCache: entries in this process, in memory alone or with a journal that outlives it."""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import count
from typing import Protocol

from headway.router.stores.nearest import Nearest, Vector
from headway.router.stores.response_cache.entry import Entry


class Journal(Protocol):
    """Where a LocalCache writes what it does. Its failures are its own."""

    name: str

    def load(self) -> Iterable[Entry]:
        """What earlier processes kept, the oldest first."""
        ...

    def write(self, entry: Entry) -> None: ...

    def erase(self, entry_ids: Collection[str]) -> None: ...

    def trouble(self) -> str | None: ...

    def close(self) -> None: ...


class _Held:
    """An entry with what eviction needs to know."""

    __slots__ = ("entry", "key", "uses")

    def __init__(self, entry: Entry, key: int) -> None:
        self.entry, self.key, self.uses = entry, key, 0


class LocalCache:
    """For one event loop. Each partition and representation has its own set of vectors, so nothing of another tenant is ever compared.

    `order` is that of eviction: oldest first for fifo, least recently used first for lru.
    """

    def __init__(self, journal: Journal | None = None) -> None:
        self.backend = journal.name if journal else "memory"
        self._journal = journal
        self._numbers = count()
        self._held: OrderedDict[str, _Held] = OrderedDict()
        self._ids: dict[int, str] = {}
        self._same: dict[tuple[str, str], dict[str, str]] = {}  # partition and exact -> representation -> id
        self._vectors: dict[tuple[str, str], Nearest] = {}  # partition and representation
        self._victim: Callable[[OrderedDict[str, _Held]], str] = _first
        self._moves_on_use = False
        self._max_entries = sys.maxsize
        for entry in journal.load() if journal else ():
            if not entry.is_over:
                self._hold(entry)

    def limit(self, max_entries: int, eviction: str) -> None:
        self._max_entries = max_entries
        self._victim = _VICTIMS[eviction]
        self._moves_on_use = eviction == "lru"
        self._shrink()

    async def same(self, partition: str, exact: str, representation: str | None) -> Entry | None:
        found = self._same.get((partition, exact), {})
        names = reversed(found) if representation is None else (representation, "")
        for name in names:
            if name in found and (entry := self._alive(found[name])) is not None:
                return entry
        return None

    async def nearest(self, partition: str, representation: str, vector: Vector, limit: int) -> Sequence[tuple[Entry, float]]:
        vectors = self._vectors.get((partition, representation))
        found = [(self._alive(self._ids[key]), similarity) for key, similarity in vectors.search(vector, limit)] if vectors else []
        return [(entry, similarity) for entry, similarity in found if entry is not None]

    async def keep(self, entry: Entry) -> None:
        replaced = self._same.get((entry.partition, entry.exact), {}).get(entry.representation)
        if replaced is not None:
            self._drop([replaced])
        self._hold(entry)
        if self._journal:
            self._journal.write(entry)
        self._shrink()

    async def used(self, entry: Entry) -> None:
        held = self._held.get(entry.id)
        if held is not None:
            held.uses += 1
            if self._moves_on_use:
                self._held.move_to_end(entry.id)

    async def get(self, entry_id: str) -> Entry | None:
        return self._alive(entry_id)

    async def remove(self, entry_ids: Collection[str]) -> int:
        return self._drop([entry_id for entry_id in entry_ids if entry_id in self._held])

    async def clear(self) -> int:
        return self._drop(list(self._held))

    async def entries(self) -> Sequence[Entry]:
        alive = (self._alive(entry_id) for entry_id in list(self._held))
        return sorted((entry for entry in alive if entry is not None), key=lambda entry: -entry.created)

    async def counts(self) -> Mapping[str, int]:
        counted: dict[str, int] = {}
        for held in self._held.values():
            counted[held.entry.representation] = counted.get(held.entry.representation, 0) + 1
        return counted

    async def trouble(self) -> str | None:
        return self._journal.trouble() if self._journal else None

    async def close(self) -> None:
        if self._journal:
            self._journal.close()

    def _alive(self, entry_id: str) -> Entry | None:
        held = self._held.get(entry_id)
        if held is None:
            return None
        if held.entry.is_over:
            self._drop([entry_id])
            return None
        return held.entry

    def _hold(self, entry: Entry) -> None:
        held = self._held[entry.id] = _Held(entry, next(self._numbers))
        self._ids[held.key] = entry.id
        self._same.setdefault((entry.partition, entry.exact), {})[entry.representation] = entry.id
        if entry.vector is not None:
            self._vectors.setdefault((entry.partition, entry.representation), Nearest()).add(held.key, entry.vector)

    def _shrink(self) -> None:
        while len(self._held) > self._max_entries:
            self._drop([self._victim(self._held)])

    def _drop(self, entry_ids: Collection[str]) -> int:
        for entry_id in entry_ids:
            held = self._held.pop(entry_id)
            entry = held.entry
            del self._ids[held.key]
            same = self._same[entry.partition, entry.exact]
            if same.get(entry.representation) == entry_id:
                del same[entry.representation]
            if not same:
                del self._same[entry.partition, entry.exact]
            vectors = self._vectors.get((entry.partition, entry.representation))
            if vectors is not None:
                vectors.remove(held.key)
                if not len(vectors):
                    del self._vectors[entry.partition, entry.representation]
        if self._journal and entry_ids:
            self._journal.erase(entry_ids)
        return len(entry_ids)


def _first(held: OrderedDict[str, _Held]) -> str:
    return next(iter(held))


def _least_used(held: OrderedDict[str, _Held]) -> str:
    """The oldest of those that were used least, but never the newest of all: it has had no chance yet."""
    newest = next(reversed(held))
    return min((entry_id for entry_id in held if entry_id != newest), key=lambda entry_id: held[entry_id].uses, default=newest)


_VICTIMS: Mapping[str, Callable[[OrderedDict[str, _Held]], str]] = {"fifo": _first, "lru": _first, "lfu": _least_used}
