"""The queue of sequences that hold no blocks: first come first served, or by priority."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator
from typing import Protocol

from headway.engine.sequence import Sequence


class WaitingQueue(Protocol):
    """Order of admission. A preempted sequence goes back to where it is admitted before its equals."""

    def add(self, sequence: Sequence) -> None: ...
    def put_back(self, sequence: Sequence) -> None: ...
    def head(self) -> Sequence: ...
    def pop(self) -> Sequence: ...
    def remove(self, sequence: Sequence) -> None: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Sequence]: ...


class FcfsQueue:
    """By arrival; a preempted sequence returns to the front."""

    def __init__(self) -> None:
        self._items: deque[Sequence] = deque()

    def add(self, sequence: Sequence) -> None:
        self._items.append(sequence)

    def put_back(self, sequence: Sequence) -> None:
        self._items.appendleft(sequence)

    def head(self) -> Sequence:
        return self._items[0]

    def pop(self) -> Sequence:
        return self._items.popleft()

    def remove(self, sequence: Sequence) -> None:
        self._items.remove(sequence)

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Sequence]:
        return iter(self._items)


class PriorityQueue:
    """By (priority, arrival), lower first. A preempted sequence keeps its arrival, so it precedes later equals by itself."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Sequence]] = []

    def add(self, sequence: Sequence) -> None:
        heapq.heappush(self._heap, (sequence.request.priority, sequence.order, sequence))

    def put_back(self, sequence: Sequence) -> None:
        self.add(sequence)

    def head(self) -> Sequence:
        return self._heap[0][2]

    def pop(self) -> Sequence:
        return heapq.heappop(self._heap)[2]

    def remove(self, sequence: Sequence) -> None:
        self._heap = [item for item in self._heap if item[2] is not sequence]
        heapq.heapify(self._heap)

    def __len__(self) -> int:
        return len(self._heap)

    def __iter__(self) -> Iterator[Sequence]:
        return (item[2] for item in sorted(self._heap, key=lambda item: item[:2]))


QUEUES: dict[str, type[FcfsQueue] | type[PriorityQueue]] = {"fcfs": FcfsQueue, "priority": PriorityQueue}
