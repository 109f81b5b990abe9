"""SharedStores: counts and memories in Redis that several routers share, open while some configuration uses them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

from headway.router.config.document.services import BudgetRedis, LimitRedis, ResponseAPIRedis
from headway.router.metrics.registry import RouterMetrics

if TYPE_CHECKING:
    from headway.router.listener.shared_limits import SharedLimits
    from headway.router.selection.affinity.shared_memory import SharedModelMemory
    from headway.router.spend.shared_budgets import SharedBudgets
    from headway.router.stores.redis_link import RedisLink

T = TypeVar("T")


class SharedStores:
    """Each is made when it is first asked for, by its Redis; a reload finds it as it was. The library for Redis is imported then."""

    def __init__(self, metrics: RouterMetrics) -> None:
        self._metrics = metrics
        self._open: dict[tuple[str, ResponseAPIRedis], Any] = {}

    def limits(self, settings: LimitRedis) -> SharedLimits:
        def made(link: RedisLink) -> SharedLimits:
            from headway.router.listener.shared_limits import SharedLimits

            return SharedLimits(link, settings.key_prefix)

        return self._of("ratelimit", settings, made)

    def budgets(self, settings: BudgetRedis) -> SharedBudgets:
        def made(link: RedisLink) -> SharedBudgets:
            from headway.router.spend.shared_budgets import SharedBudgets

            return SharedBudgets(link, settings.key_prefix)

        return self._of("budgets", settings, made)

    def models(self, settings: ResponseAPIRedis) -> SharedModelMemory:
        def made(link: RedisLink) -> SharedModelMemory:
            from headway.router.selection.affinity.shared_memory import SharedModelMemory

            return SharedModelMemory(link, settings.key_prefix)

        return self._of("sessions", settings, made)

    async def close(self) -> None:
        for store in self._open.values():
            await store.close()
        self._open.clear()

    def _of(self, store: str, settings: ResponseAPIRedis, made: Callable[[RedisLink], T]) -> T:
        found = self._open.get((store, settings))
        if found is None:
            from headway.router.stores.redis_address import connection_of
            from headway.router.stores.redis_link import RedisLink

            found = self._open[store, settings] = made(RedisLink(connection_of(settings), store=store, metrics=self._metrics))
        return cast(T, found)
