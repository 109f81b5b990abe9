"""Span: which numbers a setting may have."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """From `low` to `high`, both ends allowed unless they are `above` or `below`; `also`: one more value with a meaning of its own.

    No NaN and no infinity is ever in it, and with `whole` nothing but integers is.
    """

    low: float
    high: float | None = None
    above: bool = False  # low itself is not allowed
    below: bool = False  # high itself is not allowed
    also: int | None = None
    whole: bool = False

    def __contains__(self, value: object) -> bool:
        if isinstance(value, bool) or not isinstance(value, int if self.whole else int | float):
            return False
        if isinstance(value, float) and not math.isfinite(value):
            return False
        if value == self.also:
            return True
        high_enough = value > self.low if self.above else value >= self.low
        low_enough = self.high is None or (value < self.high if self.below else value <= self.high)
        return high_enough and low_enough

    def __str__(self) -> str:
        """`at least 1`, `above 0 and at most 1`, `0 to 65535`."""
        if self.high is not None and not self.above and not self.below:
            text = f"{self.low} to {self.high}"
        else:
            text = f"{'above' if self.above else 'at least'} {self.low}"
            text += "" if self.high is None else f" and {'below' if self.below else 'at most'} {self.high}"
        return text if self.also is None else f"{text}, or {self.also}"


def whole(low: int, high: int | None = None, *, also: int | None = None) -> Span:
    return Span(low, high, also=also, whole=True)
