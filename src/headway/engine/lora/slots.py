"""AdapterSlots: which waiting sequence starts next, when only so many different adapters may run side by side."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Final

from headway.engine.sequence import Sequence
from headway.telemetry.stats import AdapterUse

_LOOKED_AT: Final = 1_000  # waiting sequences, so that a step costs little however long the queue is


class AdapterSlots:
    """A sequence without an adapter, or with one that runs already, starts in its turn. One whose adapter has no place lets others pass,
    but of those with adapters only such as had arrived when it first lacked a place: those that come later would keep the running adapters
    busy for ever. So everybody's wait is bounded, and requests of one adapter still run together.
    """

    def __init__(self, most: int):
        self.most = most
        self._gate: int | None = None  # orders of arrival from here on wait behind a sequence that lacks a place

    def next(self, waiting: Iterable[Sequence], running: Iterable[Sequence], arrivals: int) -> Sequence | None:
        """`waiting` in its order; `arrivals`: how many sequences have come so far. None: nobody may start."""
        used = {adapter for sequence in running if (adapter := sequence.request.adapter) is not None}
        blocked = False
        for sequence in islice(waiting, _LOOKED_AT):
            adapter = sequence.request.adapter
            if adapter is None:
                return sequence
            if adapter in used or len(used) < self.most:
                if not blocked:
                    self._gate = None
                    return sequence
                if self._gate is None or sequence.order < self._gate:
                    return sequence
            elif not blocked:
                blocked = True
                if self._gate is None:
                    self._gate = arrivals
        return None

    def use(self, waiting: Iterable[Sequence], running: Iterable[Sequence]) -> AdapterUse:
        """For the metrics."""
        return AdapterUse(self.most, _names(running), _names(islice(waiting, _LOOKED_AT)))


def _names(sequences: Iterable[Sequence]) -> tuple[str, ...]:
    return tuple(sorted({adapter.name for sequence in sequences if (adapter := sequence.request.adapter) is not None}))
