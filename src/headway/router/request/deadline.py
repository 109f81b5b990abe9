"""Deadline: the moment until which somebody waits."""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deadline:
    """`at` is in seconds of `time.monotonic`. `visible` says that the caller named it; otherwise it is the router's own bound."""

    at: float
    visible: bool = False

    @classmethod
    def after(cls, seconds: float, visible: bool = False) -> Deadline:
        return cls(time.monotonic() + seconds, visible)

    @property
    def left(self) -> float:
        """Seconds, 0 when it is over."""
        return max(0.0, self.at - time.monotonic())

    def sooner(self, seconds: float) -> Deadline:
        """This deadline, or `seconds` from now if that comes first."""
        at = time.monotonic() + seconds
        return self if self.at <= at else Deadline(at, self.visible)
