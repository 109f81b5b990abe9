"""Reservations: what requests under way may still cost, held back from their keys' budgets until it is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(slots=True)
class Hold:
    """`release` once the real cost is in the ledger; a second time it does nothing."""

    amount: float = 0.0
    _of: Reservations | None = None
    _place: tuple[str, str] = ("", "")

    def charge(self, amount: float, currency: str) -> None:
        """What the request cost is in the ledger of this process: there is nobody else to tell."""

    def release(self) -> None:
        owner, self._of = self._of, None
        if owner is not None:
            owner.remove(self._place, self.amount)

    async def settle(self) -> None:
        """Nothing to wait for."""


NO_HOLD: Final = Hold()


class Reservations:
    """By key and currency. One event loop; a process that is restarted has no requests under way."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, str], tuple[int, float]] = {}  # how many, and their sum

    def held(self, key: str, currency: str) -> float:
        return self._held.get((key, currency), (0, 0.0))[1]

    def hold(self, key: str, currency: str, amount: float) -> Hold:
        place = key, currency
        count, total = self._held.get(place, (0, 0.0))
        self._held[place] = count + 1, total + amount
        return Hold(amount, self, place)

    def remove(self, place: tuple[str, str], amount: float) -> None:
        count, total = self._held[place]
        if count > 1:
            self._held[place] = count - 1, total - amount
        else:  # rounding errors of the sum end with the last one
            del self._held[place]
