"""What is going on with each provider model: requests under way, and how many of the last ones it answered; outlives generations."""

from __future__ import annotations

from collections import deque

_REMEMBERED = 500


class ModelActivity:
    def __init__(self) -> None:
        self._in_flight: dict[str, int] = {}
        self._answered: dict[str, deque[bool]] = {}

    def enter(self, model: str) -> int:
        """The number of requests that the model has now, this one included."""
        self._in_flight[model] = self._in_flight.get(model, 0) + 1
        return self._in_flight[model]

    def leave(self, model: str) -> int:
        self._in_flight[model] -= 1
        return self._in_flight[model]

    def in_flight(self, model: str) -> int:
        return self._in_flight.get(model, 0)

    def note(self, model: str, answered: bool) -> None:
        """`answered` is False for failures of the model's backends, never for a request that was wrong itself."""
        self._answered.setdefault(model, deque(maxlen=_REMEMBERED)).append(answered)

    def experience(self, model: str) -> float:
        """The share of its last requests that a model answered, (answered + 1) / (all + 2): 0.5 for a model that was never asked."""
        seen = self._answered.get(model, ())
        return (sum(seen) + 1) / (len(seen) + 2)
