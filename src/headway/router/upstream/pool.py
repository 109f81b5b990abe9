"""Pool: which backend of a provider model gets the next request."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence

from headway.router.prefixes.preference import Preference
from headway.router.upstream.backend import Backend
from headway.router.upstream.health import BackendState, BackendStates


class Pool:
    """Smooth weighted round robin, or the fewest requests in flight for the weight (equal ones in turn). Weight 0 takes no requests.

    Ejected and unhealthy backends are passed over while another one is left; when none is, asking one of them is better than refusing. Those that
    have as many requests as they may are passed over likewise; when all do, the one with the fewest for its weight gets one more that waits.
    """

    def __init__(self, backends: Sequence[Backend], states: BackendStates, least_request: bool = False):
        self._members = [(backend, states.of(backend.identity)) for backend in backends if backend.weight > 0]
        self._least = least_request
        self._credit = [0] * len(self._members)

    @property
    def states(self) -> list[BackendState]:
        return [state for _, state in self._members]

    @property
    def in_flight(self) -> int:
        return sum(state.in_flight for _, state in self._members)

    def pick(self, tried: Collection[str] = (), preference: Preference | None = None) -> tuple[Backend, BackendState] | None:
        """One backend, rather none whose alias is in `tried`; None when the pool has none at all. A preference comes before the policy."""
        if len(self._members) <= 1:
            return self._members[0] if self._members else None
        now = time.monotonic()
        alive = [at for at, (_, state) in enumerate(self._members) if state.healthy and not state.ejected(now)]
        alive = alive or list(range(len(self._members)))
        fresh = [at for at in alive if self._members[at][0].alias not in tried] or [
            at for at in range(len(self._members)) if self._members[at][0].alias not in tried
        ]
        among = fresh or alive
        free = [at for at in among if self._members[at][1].has_place]
        if preference is not None:
            free = list(preference.among(free or among, lambda at: self._members[at][0].alias, self._load))
        if self._least or not free:
            least = min(self._load(at) for at in free or among)
            free = [at for at in free or among if self._load(at) == least]
        return self._members[self._next(free)]

    def untried(self, tried: Collection[str]) -> bool:
        return any(backend.alias not in tried for backend, _ in self._members)

    def _load(self, at: int) -> float:
        backend, state = self._members[at]
        return (state.in_flight + len(state.waiting) + 1) / backend.weight

    def _next(self, among: Sequence[int]) -> int:
        total = 0
        for at in among:
            weight = self._members[at][0].weight
            self._credit[at] += weight
            total += weight
        best = max(among, key=lambda at: self._credit[at])
        self._credit[best] -= total
        return best
