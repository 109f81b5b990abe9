"""Preference: which backends hold how much of a prompt, and how much busier than others one may be and still get it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Preference:
    """`held` are tokens by the alias of a backend, never 0. `most_ahead` is in requests under way for the weight."""

    held: Mapping[str, int]
    most_ahead: float

    def among(self, places: Sequence[int], alias: Callable[[int], str], load: Callable[[int], float]) -> Sequence[int]:
        """Of `places` (never empty) those that are not too far ahead of the least busy one, and of these those that hold the longest
        beginning; all where none of `places` holds any."""
        held = {at: self.held.get(alias(at), 0) for at in places}
        if not any(held.values()):
            return places
        least = min(load(at) for at in places)
        near = [at for at in places if load(at) - least <= self.most_ahead]
        longest = max(held[at] for at in near)
        return [at for at in near if held[at] == longest]

    def outcome(self, alias: str) -> str:
        """What the choice of a backend means: `held` by it is the longest beginning, or it is another because that one was `busy`."""
        return "held" if self.held.get(alias, 0) == max(self.held.values()) else "busy"
