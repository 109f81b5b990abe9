"""SharedBudgets: budgets of keys in Redis, spent and held back by all routers together."""

from __future__ import annotations

import asyncio
import math
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from headway.router.config.document.listeners import KeyBudget
from headway.router.spend.period import Per
from headway.router.spend.reservations import NO_HOLD, Hold
from headway.router.spend.shared_script import BUDGET
from headway.router.stores.redis_link import RedisLink

_BILLION: Final = 1_000_000_000
_LEASE_SECONDS: Final = 60  # after which what a dead router held back is free again
_DAYS_TOLD: Final = 62


@dataclass(slots=True)
class _Place:
    """What this process knows of the budget of one key. `unsaid`: Redis has not heard the latest. One call at a time keeps them in order."""

    key: str
    currency: str
    per: Per
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    version: int = 0
    held: int = 0
    spent: dict[int, int] = field(default_factory=dict)  # day since 1970 -> billionths
    unsaid: bool = False


@dataclass(frozen=True, slots=True)
class Standing:
    """The answer to a reservation: what all routers spent and held back before it, and `hold`, None for one that does not fit."""

    spent: float
    held: float
    now: datetime
    hold: SharedHold | None


class SharedHold:
    """Like Hold; `charge` before `release`, then `settle`. `local` is held back in this process, too."""

    def __init__(self, owner: SharedBudgets, place: _Place, billionths: int, local: Hold = NO_HOLD) -> None:
        self._owner, self._place, self._billionths, self._local = owner, place, billionths, local

    def charge(self, amount: float, currency: str) -> None:
        if currency == self._place.currency:
            self._owner.spend(self._place, amount)

    def release(self) -> None:
        held, self._billionths = self._billionths, 0
        if held:
            self._place.held -= held
            self._place.unsaid = True
        self._local.release()

    async def settle(self) -> None:
        """Returns when Redis knows, or does not answer: then it is told later."""
        await self._owner.tell(self._place)


class SharedBudgets:
    """For one event loop. What was spent while Redis was away is told when it is back. A Redis that lost everything learns from each router what that
    router spent since its start."""

    def __init__(self, link: RedisLink, prefix: str) -> None:
        self._link, self._prefix = link, prefix + "v1:"
        self._script = link.script(BUDGET)
        self._process = uuid.uuid4().hex[:16]
        self._places: dict[tuple[str, str], _Place] = {}
        self._ahead = 0.0  # seconds of Redis' clock less time.monotonic(), once it was heard
        self._keeper: asyncio.Task[None] | None = None

    async def reserve(self, key: str, budget: KeyBudget, sure: float, likely: float) -> Standing | None:
        """One round trip. None while Redis does not answer."""
        place = self._place(key, budget)
        async with place.lock:
            place.unsaid = True  # until it is known what became of this call
            found = await self._call(place, _billionths(budget.amount), math.ceil(sure * _BILLION), math.ceil(likely * _BILLION))
            if found is None:
                return None
            granted, reserved, spent, held, now = found
            place.unsaid = False
            if granted < 0:
                return None
            place.held += reserved
        hold = SharedHold(self, place, reserved) if granted else None
        return Standing(spent / _BILLION, held / _BILLION, datetime.fromtimestamp(now, UTC), hold)

    def beside(self, key: str, budget: KeyBudget, local: Hold) -> SharedHold:
        """For a request that was let in without Redis: what it costs is told later."""
        return SharedHold(self, self._place(key, budget), 0, local)

    def spend(self, place: _Place, amount: float) -> None:
        day = int(self._now() // 86400)
        place.spent[day] = place.spent.get(day, 0) + _billionths(amount)
        place.unsaid = True

    async def tell(self, place: _Place) -> None:
        if not place.unsaid:
            return
        async with place.lock:
            if place.unsaid:
                await self._say(place)

    async def close(self) -> None:
        if self._keeper is not None:
            self._keeper.cancel()
            with suppress(asyncio.CancelledError):
                await self._keeper
        for place in self._places.values():
            await self.tell(place)
        await self._link.close()

    def _place(self, key: str, budget: KeyBudget) -> _Place:
        name = key, budget.currency
        if name not in self._places:
            self._places[name] = _Place(key, budget.currency, budget.per)
        if self._keeper is None:
            self._keeper = asyncio.create_task(self._keep())
        place = self._places[name]
        place.per = budget.per
        return place

    async def _say(self, place: _Place) -> None:
        place.unsaid = False
        try:
            heard = await self._call(place, -1, 0, 0) is not None
        except asyncio.CancelledError:
            place.unsaid = True
            raise
        place.unsaid = place.unsaid or not heard

    async def _call(self, place: _Place, amount: int, sure: int, likely: int) -> list[int] | None:
        place.version += 1
        today = int(self._now() // 86400)
        days = {day: total for day, total in place.spent.items() if place.per == "total" or day > today - _DAYS_TOLD}
        told = [value for pair in days.items() for value in pair]
        keys = [f"{self._prefix}{kind}:{place.key}:{place.currency}" for kind in ("spent", "held")]
        arguments = [self._process, place.version, place.held, _LEASE_SECONDS, place.per, amount, sure, likely, *told]
        found = await self._link.run(lambda redis: self._script(keys, arguments), None)
        if found is None:
            return None
        answer = [int(value) for value in found]
        self._ahead = answer[-1] - time.monotonic()
        return answer

    async def _keep(self) -> None:
        """Says again what is held back before it is forgotten, and what Redis has not heard yet."""
        while True:
            await asyncio.sleep(_LEASE_SECONDS / 4)
            for place in list(self._places.values()):
                if place.held or place.unsaid:
                    async with place.lock:
                        await self._say(place)

    def _now(self) -> float:
        """Seconds of Redis' clock; of this machine's until that was heard."""
        return time.monotonic() + self._ahead if self._ahead else time.time()


def _billionths(amount: float) -> int:
    return round(amount * _BILLION)
