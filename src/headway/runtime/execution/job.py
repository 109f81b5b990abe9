"""Job: one plan on its way through the scheduler; what it still waits for, and what it has been given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from headway.runtime.execution.row_key import RowKey, key_of
from headway.runtime.row import Outcome, Row


@dataclass(slots=True, eq=False)
class Job:
    """Times are `time.perf_counter` seconds. `on_round` is called once per round, on any thread, when `outcomes` is
    complete or `error` is set.

    `waiting` are the rows of this round without an outcome, each once however often it was asked for, the costliest first.
    """

    arrived: float
    on_round: Callable[[Job], None]
    deadline: float | None = None
    outcomes: list[Outcome] = field(default_factory=list)
    error: BaseException | None = None
    waiting: dict[RowKey, Row] = field(default_factory=dict)
    running: set[RowKey] = field(default_factory=set)  # rows in the forward pass that is going on
    expected_finish: float = 0.0
    tokens: int = 0  # of all rounds
    is_admitted: bool = False
    is_over: bool = False
    round_began: float = 0.0
    queue_seconds: float = 0.0
    forward_seconds: float = 0.0
    _places: dict[RowKey, list[int]] = field(default_factory=dict)

    def begin_round(self, rows: Sequence[Row], now: float) -> int:
        """Take the rows of the next round; returns their tokens, each equal row counted once."""
        places: dict[RowKey, list[int]] = {}
        distinct: list[tuple[RowKey, Row]] = []
        for index, row in enumerate(rows):
            key = key_of(row)
            if key in places:
                places[key].append(index)
            else:
                places[key] = [index]
                distinct.append((key, row))
        if len(distinct) > 1:
            distinct.sort(key=_cost, reverse=True)
        self.waiting = dict(distinct)
        self.outcomes = [None] * len(rows)
        self.round_began = now
        self._places = places
        return sum(row.cost for _, row in distinct)

    @property
    def is_round_done(self) -> bool:
        return not self.waiting and not self.running

    def give(self, key: RowKey, outcome: Outcome) -> None:
        """The outcome of a row, for every place that asked for it."""
        self.waiting.pop(key, None)
        self.running.discard(key)
        for index in self._places[key]:
            self.outcomes[index] = outcome


def _cost(entry: tuple[RowKey, Row]) -> int:
    return entry[1].cost
