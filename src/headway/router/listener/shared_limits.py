"""SharedLimits: the windows of rate limits in Redis, counted for all routers together by Redis' own clock."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from headway.router.config.document.services import RateLimitRule
from headway.router.listener.rate_limits import UNIT_SECONDS, Window
from headway.router.stores.redis_link import RedisLink

_COUNT: Final = """
local now = tonumber(redis.call('TIME')[1])
local windows, limited, what = {}, 0, 0
for i, key in ipairs(KEYS) do
  local length, requests, tokens = tonumber(ARGV[3 * i - 2]), tonumber(ARGV[3 * i - 1]), tonumber(ARGV[3 * i])
  local start = now - now % length
  local found = redis.call('HMGET', key, 'start', 'requests', 'tokens')
  local window = {start, 0, 0, length}
  if found[1] and tonumber(found[1]) == start then
    window = {start, tonumber(found[2] or 0), tonumber(found[3] or 0), length}
  end
  windows[i] = window
  if limited == 0 and requests >= 0 and window[2] >= requests then limited, what = i, 1 end
  if limited == 0 and tokens >= 0 and window[3] >= tokens then limited, what = i, 2 end
end
local answer = {limited, what, now}
for i, key in ipairs(KEYS) do
  local window = windows[i]
  if limited == 0 then
    window[2] = window[2] + 1
    redis.call('HSET', key, 'start', window[1], 'requests', window[2], 'tokens', window[3])
    redis.call('EXPIREAT', key, window[1] + window[4] + 60)
  end
  answer[3 + i] = window[2]
end
return answer
"""
"""KEYS: one window for each rule. ARGV: its seconds, most requests, most tokens (-1: no limit). A request counts under all of them or none. Answers
the number of the rule that is used up (0: none), of what (1 requests, 2 tokens), the seconds of Redis' clock, and the requests in each window."""

_CHARGE: Final = """
for i, key in ipairs(KEYS) do
  if redis.call('HGET', key, 'start') == ARGV[i + 1] then redis.call('HINCRBY', key, 'tokens', ARGV[1]) end
end
return 1
"""
"""ARGV: tokens, then for each window the start that it must still have."""


@dataclass(frozen=True, slots=True)
class Counted:
    """`limited` is the place of the rule that is used up, None when the request was counted; `tokens` says which of its limits. `now` is Redis' clock."""

    limited: int | None
    tokens: bool
    now: float
    windows: tuple[Window, ...]


class SharedLimits:
    def __init__(self, link: RedisLink, prefix: str) -> None:
        self._link, self._prefix = link, prefix + "v1:"
        self._count, self._charge = link.script(_COUNT), link.script(_CHARGE)

    async def count(self, rules: Sequence[RateLimitRule], caller: str) -> Counted | None:
        """One round trip. None while Redis does not answer."""
        keys = [self._key(rule, caller) for rule in rules]
        limits = [value for rule in rules for value in (UNIT_SECONDS[rule.unit], _bound(rule.requests_per_unit), _bound(rule.tokens_per_unit))]
        found = await self._link.run(lambda redis: self._count(keys, limits), None)
        if found is None:
            return None
        limited, what, now, *requests = map(int, found)
        windows = tuple(Window(now - now % UNIT_SECONDS[rule.unit], used) for rule, used in zip(rules, requests, strict=True))
        return Counted(limited - 1 if limited else None, what == 2, float(now), windows)

    def charging(self, rules: Sequence[RateLimitRule], caller: str, windows: Sequence[Window]) -> Callable[[], Awaitable[None]]:
        """Tells what the windows of one request were charged with since it was told last. What Redis does not hear is lost."""
        keys, starts, told = [self._key(rule, caller) for rule in rules], [str(window.start) for window in windows], 0

        async def tell() -> None:
            nonlocal told
            tokens = windows[0].tokens - told
            if tokens:
                told += tokens
                try:
                    await self._link.run(lambda redis: self._charge(keys, [tokens, *starts]), None)
                except asyncio.CancelledError:  # whoever ends this tells it again
                    told -= tokens
                    raise

        return tell

    async def close(self) -> None:
        await self._link.close()

    def _key(self, rule: RateLimitRule, caller: str) -> str:
        """Callers' names are not readable in Redis."""
        digest = hashlib.sha256(f"{len(rule.name)}:{rule.name}{rule.unit}:{caller}".encode("utf-8", "surrogatepass")).hexdigest()
        return self._prefix + digest[:40]


def _bound(limit: int | None) -> int:
    return -1 if limit is None else limit
