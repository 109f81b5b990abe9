"""BoundedRecords: responses that can be asked for again, in this process; and the items of those that follow each other."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import orjson

from headway.errors import NotFoundError
from headway.wire.responses.input import MOST_ITEMS
from headway.wire.responses.items import Item

Record: TypeAlias = dict[str, Any]
"""`response` and `input` (its items), and what else belongs to whoever keeps it."""
MOST_BYTES = 256 * 1024 * 1024
_MOST_ANSWERS = 1000


class BoundedRecords:
    """At most `most` records and MOST_BYTES of them, each for `ttl_seconds`; the oldest go first."""

    def __init__(self, most: int, ttl_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.most, self.ttl_seconds, self._clock = most, ttl_seconds, clock
        self._records: OrderedDict[str, tuple[float, bytes]] = OrderedDict()
        self._bytes = 0

    def put(self, name: str, record: Record) -> None:
        raw = orjson.dumps(record)
        self.drop(name)
        self._records[name] = self._clock() + self.ttl_seconds, raw
        self._bytes += len(raw)
        while self._records and (len(self._records) > self.most or self._bytes > MOST_BYTES or self._oldest_is_over()):
            self.drop(next(iter(self._records)))

    def get(self, name: str) -> Record | None:
        end, raw = self._records.get(name, (0.0, b""))
        if not raw:
            return None
        if end <= self._clock():
            self.drop(name)
            return None
        found: Record = orjson.loads(raw)
        return found

    def drop(self, name: str) -> bool:
        _, raw = self._records.pop(name, (0.0, b""))
        self._bytes -= len(raw)
        return bool(raw)

    def _oldest_is_over(self) -> bool:
        return next(iter(self._records.values()))[0] <= self._clock()


def no_response(name: str, fix: str | None = None) -> NotFoundError:
    return NotFoundError(f'There is no response "{name[:80]}"', reason="response_not_found", param="response_id", fix=fix)


async def chain_items(record_of: Callable[[str], Awaitable[Record]], name: str | None) -> list[Item]:
    """Inputs and outputs from the first answer of the chain to `name`, oldest first.

    `record_of` raises NotFoundError for a gap; so does this for a chain without end.
    """
    links: list[list[Item]] = []
    count = 0
    while name is not None:
        record = await record_of(name)
        links.append([*record["input"], *record["response"]["output"]])
        count += len(links[-1])
        name = record["response"].get("previous_response_id")
        if len(links) > _MOST_ANSWERS or count > MOST_ITEMS:
            raise NotFoundError(f"The response follows more than {_MOST_ANSWERS} answers or {MOST_ITEMS} items", reason="response_not_found")
    return [item for link in reversed(links) for item in link]
