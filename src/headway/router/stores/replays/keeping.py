"""What every store of replays does, wherever it keeps them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from headway.router.stores.replays.store import Filters


class Replays(Protocol):
    """`add` never waits and never raises; what could not be kept is counted in `dropped`. The others wait for their answer: never on an event loop.
    They raise StoreUnavailableError where the store is another process."""

    dropped: int

    def limit(self, max_records: int, ttl: float) -> None: ...

    def add(self, record: Mapping[str, Any]) -> None: ...

    def find(self, filters: Filters, limit: int, offset: int) -> tuple[Sequence[dict[str, Any]], int]: ...

    def get(self, replay: str) -> dict[str, Any]: ...

    def aggregate(self, filters: Filters) -> dict[str, Any]: ...

    def trajectory(self, session: str, limit: int) -> Sequence[dict[str, Any]]: ...

    def add_outcome(self, replay: str, outcome: Mapping[str, Any], key: str | None = None, early: bool = False) -> tuple[dict[str, Any], bool]: ...

    def close(self) -> None: ...
