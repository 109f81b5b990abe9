"""Circuit breakers of provider models, for the fallback policy; they outlive generations."""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BreakerSettings:
    """`failures` in a row open the circuit for `cooldown` seconds; then `probes` requests at a time try whether it is well."""

    failures: int = 5
    cooldown: float = 30.0
    probes: int = 1


@dataclass(slots=True)
class Circuit:
    """Closed lets everything pass, open nothing, half-open (after the cool-down, until a probe succeeds) a few."""

    failures: int = 0
    open_until: float | None = None
    probing: int = 0

    def begin(self, settings: BreakerSettings) -> bool:
        """Whether a request may pass; it must then be ended with `end`."""
        if self.open_until is None:
            return True
        if time.monotonic() < self.open_until or self.probing >= settings.probes:
            return False
        self.probing += 1
        return True

    def end(self, settings: BreakerSettings, ok: bool | None) -> None:
        """`ok` None: the request ended for another reason (its client left) and says nothing."""
        if self.open_until is not None:
            self.probing = max(0, self.probing - 1)
        if ok is None:
            return
        if ok:
            self.failures, self.open_until, self.probing = 0, None, 0
            return
        self.failures += 1
        if self.open_until is not None or self.failures >= settings.failures:
            self.open_until = time.monotonic() + settings.cooldown

    @property
    def state(self) -> str:
        if self.open_until is None:
            return "closed"
        return "open" if time.monotonic() < self.open_until else "half_open"


class Circuits:
    """By provider model."""

    def __init__(self) -> None:
        self._circuits: dict[str, Circuit] = {}

    def of(self, model: str) -> Circuit:
        return self._circuits.setdefault(model, Circuit())
