"""Followers: one for each backend that publishes events; outlives generations, so that a reload forgets nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from headway.router.metrics.registry import RouterMetrics
from headway.router.prefixes.follower import EventSource, Follower

FollowerKey = tuple[str, EventSource, int, float]  # the backend's identity, its source, most blocks, seconds until stale
_JOIN_SECONDS = 5.0


class Followers:
    def __init__(self, metrics: RouterMetrics):
        self._metrics = metrics
        self._followers: dict[FollowerKey, Follower] = {}

    def of(self, key: FollowerKey, names: tuple[str, str]) -> Follower:
        """The follower of that key, made and not yet started where there is none. `names`: the model and the backend in metrics."""
        found = self._followers.get(key)
        if found is None:
            _, source, most_blocks, stale = key
            found = self._followers[key] = Follower(source, names, most_blocks, stale, self._metrics)
        return found

    def keep_only(self, keys: Iterable[FollowerKey]) -> None:
        """Start those, and end all others."""
        kept = set(keys)
        for key in [key for key in self._followers if key not in kept]:
            self._followers.pop(key).close()
        for follower in self._followers.values():
            follower.start()

    async def close(self) -> None:
        followers, self._followers = list(self._followers.values()), {}
        for follower in followers:
            follower.close()
        for follower in followers:
            await asyncio.to_thread(follower.join, _JOIN_SECONDS)
