"""ModelMemory: the model that each session has, in this process."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

MOST_SESSIONS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Turn:
    """One choice. `session` is a digest, `decision` the decision that matched; `proposed` was chosen for the request alone; `close` are candidates that
    the session may keep, `others` those that it may keep while it has had fewer than `least` turns. `idle` is in seconds. With `dry` nothing is noted."""

    session: str
    decision: str
    proposed: str
    close: Sequence[str]
    others: Sequence[str]
    least: int
    idle: int
    dry: bool = False


class Memory(Protocol):
    async def model(self, turn: Turn) -> str:
        """The model for this turn: the session's, if it has one that it may keep, else the proposed one, which is then the session's. Never raises."""
        ...


@dataclass(slots=True)
class _Held:
    decision: str
    model: str
    turns: int
    until: float


class ModelMemory:
    """Of more than MOST_SESSIONS those that were silent longest are forgotten. One event loop."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._held: OrderedDict[str, _Held] = OrderedDict()

    async def model(self, turn: Turn) -> str:
        held = self._held.get(turn.session)
        model, turns = turn.proposed, 0
        known = held is not None and held.decision == turn.decision and held.until > self._clock()
        if held is not None and known and (held.model in turn.close or (held.model in turn.others and held.turns < turn.least)):
            model, turns = held.model, held.turns
        if not turn.dry:
            self.note(turn, model, turns + 1)
        return model

    def note(self, turn: Turn, model: str, turns: int) -> None:
        self._held.pop(turn.session, None)
        self._held[turn.session] = _Held(turn.decision, model, turns, self._clock() + turn.idle)
        if len(self._held) > MOST_SESSIONS:
            self._held.popitem(last=False)
