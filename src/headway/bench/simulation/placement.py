"""Which replica a request goes to."""

from __future__ import annotations

import heapq
import random
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from headway.bench.simulation.replica import Replica

_MOST_PREFIXES: Final = 1_000_000  # whose replicas are remembered
_REPLICAS_PER_PREFIX: Final = 8
_SLACK: Final = 8  # requests that a replica may have more than the least loaded for the sake of its cache


class Placement(Protocol):
    """`choose` sees the replicas as they are at the moment of the arrival; `changed` tells of each whose `outstanding` changed."""

    def choose(self, prefix: int) -> int: ...
    def changed(self, index: int) -> None: ...


class RoundRobin:
    """One after the other."""

    def __init__(self, replicas: Sequence[Replica], seed: int):
        self._count = len(replicas)
        self._next = -1

    def choose(self, prefix: int) -> int:
        self._next = (self._next + 1) % self._count
        return self._next

    def changed(self, index: int) -> None:
        pass


class LeastLoad:
    """The fewest requests that have not ended; among equals the one that was not chosen for the longest time."""

    def __init__(self, replicas: Sequence[Replica], seed: int):
        self._replicas = replicas
        self._chosen = list(range(-len(replicas), 0))
        self._turn = 0
        self._heap: list[tuple[int, int, int]] = []
        self._rebuild()

    def least(self) -> int:
        heap, replicas, chosen = self._heap, self._replicas, self._chosen
        while heap[0][:2] != (replicas[heap[0][2]].outstanding, chosen[heap[0][2]]):
            heapq.heappop(heap)  # it changed since, and stands in the heap as it is now as well
        return heap[0][2]

    def choose(self, prefix: int) -> int:
        return self.take(self.least())

    def take(self, index: int) -> int:
        self._turn += 1
        self._chosen[index] = self._turn
        return index

    def changed(self, index: int) -> None:
        heapq.heappush(self._heap, (self._replicas[index].outstanding, self._chosen[index], index))
        if len(self._heap) > 8 * len(self._replicas) + 1024:
            self._rebuild()

    def _rebuild(self) -> None:
        self._heap = [(replica.outstanding, self._chosen[i], i) for i, replica in enumerate(self._replicas)]
        heapq.heapify(self._heap)


class TwoChoices:
    """The less loaded of two at random (Mitzenmacher 2001): almost as good as the least load, and needs to know only two."""

    def __init__(self, replicas: Sequence[Replica], seed: int):
        self._replicas = replicas
        self._random = random.Random(seed)

    def choose(self, prefix: int) -> int:
        count = len(self._replicas)
        first, second = self._random.randrange(count), self._random.randrange(count)
        return second if self._replicas[second].outstanding < self._replicas[first].outstanding else first

    def changed(self, index: int) -> None:
        pass


class PrefixAware:
    """The least loaded of the replicas that saw the beginning of the prompt lately, unless it has 8 requests more than the least loaded of all."""

    def __init__(self, replicas: Sequence[Replica], seed: int):
        self._replicas = replicas
        self._least = LeastLoad(replicas, seed)
        self._seen: OrderedDict[int, deque[int]] = OrderedDict()

    def choose(self, prefix: int) -> int:
        index = self._least.least()
        if prefix < 0:
            return self._least.take(index)
        seen = self._seen.setdefault(prefix, deque(maxlen=_REPLICAS_PER_PREFIX))
        self._seen.move_to_end(prefix)
        if len(self._seen) > _MOST_PREFIXES:
            self._seen.popitem(last=False)
        replicas = self._replicas
        if seen:
            warm = min(seen, key=lambda i: replicas[i].outstanding)
            if replicas[warm].outstanding <= replicas[index].outstanding + _SLACK:
                index = warm
        if index not in seen:
            seen.append(index)
        return self._least.take(index)

    def changed(self, index: int) -> None:
        self._least.changed(index)


PLACEMENTS: Final[dict[str, Callable[[Sequence[Replica], int], Placement]]] = {
    "round-robin": RoundRobin, "least-load": LeastLoad, "two-choices": TwoChoices, "prefix-aware": PrefixAware,
}  # fmt: skip
