"""Accounting: every request ends here exactly once, however it ends."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headway.router.generation.services import Services
from headway.router.listener.front import Front
from headway.router.listener.key_ring import Key
from headway.router.listener.rate_limits import NOTHING
from headway.router.listener.session_turns import count_turn, count_turn_cost
from headway.router.listener.token_estimates import judge_estimates
from headway.router.listener.usage import Usage, usage_of
from headway.router.request.context import RequestContext
from headway.router.spend.reservations import NO_HOLD, Hold

if TYPE_CHECKING:
    from headway.router.spend.shared_budgets import SharedHold

NO_KEY = ""
FROM_BACKENDS = ("upstream", "looper")
"""Values of `x-vsr-response-path` of answers that models gave for this request."""


@dataclass(frozen=True, slots=True)
class Cost:
    amount: float
    currency: str


class Account:
    """Of one request. `began` is in seconds of `time.perf_counter`."""

    def __init__(self, services: Services, front: Front, key: Key | None, began: float) -> None:
        self._services, self._front, self._key, self._began = services, front, key, began
        self._ended = False
        self.admitted = NOTHING
        self.context: RequestContext | None = None
        self.hold: Hold | SharedHold = NO_HOLD
        self._settled = False
        self.estimated_prompt: int | None = None  # tokens, where a budget asked for an estimate

    @property
    def model(self) -> str:
        """The model that was selected, "" for none: a bounded label."""
        selection = self.context.selection if self.context else None
        return (selection.model if selection else None) or ""

    def cost(self, usage: Usage | None, path: str) -> Cost | None:
        """What a request costs, with the further calls that it made; only backends' answers cost something."""
        own = self._cost(self.model, usage) if path in FROM_BACKENDS else None
        others = [cost for model, side in self._side() if (cost := self._cost(model, side)) is not None]
        shown = [cost for cost in (own, *others) if cost is not None]
        if not shown or any(cost.currency != shown[0].currency for cost in shown):
            return own
        return Cost(sum(cost.amount for cost in shown), shown[0].currency)

    def _cost(self, model: str, usage: Usage | None) -> Cost | None:
        price = self._front.prices.get(model)
        return None if price is None or usage is None else Cost(price.cost(usage), price.currency)

    def _side(self) -> list[tuple[str, Usage]]:
        """What models used whose answers the client does not get, such as those of a cascade that were not sure enough."""
        told = self.context.side_usage if self.context is not None else ()
        return [(model, usage) for model, answer in told if (usage := usage_of(answer)) is not None]

    def answered(self, path: str, usage: Usage | None) -> None:
        """A whole answer, or a stream until its end (also one that the client or the backend cut)."""
        self._outcome(path, time.perf_counter())
        if path in FROM_BACKENDS and usage is not None:
            self._used(self.model, usage)
            self._turn(usage, path)

    async def settle(self) -> None:
        """Let go of what was held back, once what was used is known, and tell stores that routers share. They answer or are told later: no failure."""
        self.hold.release()
        await self.hold.settle()
        if self.admitted.settle is not None:
            await self.admitted.settle()
        self._settled = True

    def end(self) -> None:
        """Settle beside the request if it has not happened yet; the request may be ending because its client left."""
        if self._settled:
            return
        self.hold.release()
        if isinstance(self.hold, Hold) and self.admitted.settle is None:
            return
        self._services.background.start(self.settle())

    def _turn(self, usage: Usage, path: str) -> None:
        context, metrics = self.context, self._services.metrics
        if context is None:
            return
        count_turn(metrics, self._services.last_models, context, self.model, usage)
        if (cost := self.cost(usage, path)) is not None:
            count_turn_cost(metrics, context, self.model, cost.amount, cost.currency)
        judge_estimates(metrics, context, usage, self.estimated_prompt)

    def _used(self, model: str, usage: Usage) -> None:
        metrics, self._settled = self._services.metrics, False
        self.admitted.charge(usage.prompt_tokens + usage.completion_tokens)
        if not usage.estimated:
            metrics.count("llm_model_prompt_tokens", model, by=usage.prompt_tokens)
            metrics.count("llm_model_completion_tokens", model, by=usage.completion_tokens)
            metrics.count("llm_model_tokens", model, by=usage.prompt_tokens + usage.completion_tokens)
        cost = self._cost(model, usage)
        if cost is not None:
            metrics.count("llm_model_cost", model, cost.currency, by=cost.amount)
        self._spend(model, usage, cost)

    def failed(self, reason: str, path: str = "error") -> None:
        """An answer that is an error of ours or of the backend; `reason` is from a fixed list."""
        if not self._ended:
            self._services.metrics.count("llm_request_errors", self.model, reason)
        self._outcome(path, time.perf_counter())

    def _outcome(self, path: str, now: float) -> None:
        if self._ended:
            return
        self._ended = True
        metrics, context = self._services.metrics, self.context
        metrics.count("llm_request_outcomes", path)
        metrics.observe("llm_request_duration_seconds", now - self._began, path)
        if context is None:
            return
        for model, usage in self._side():
            self._used(model, usage)
        metrics.count("llm_model_requests", self.model)
        if context.timings_ms:
            metrics.observe("llm_model_routing_latency_seconds", sum(context.timings_ms.values()) / 1000)
        named, selection = context.view.model, context.selection
        if self.model and named not in (self.model, selection and selection.lora):
            metrics.count("llm_model_routing_modifications", named, self.model)
        if context.recipe is not None:
            metrics.count("llm_entrypoint_requests", named)
            metrics.count("llm_recipe_selections", context.recipe.name)
            if context.decision_name is not None:
                metrics.count("llm_decision_match", context.recipe.name, context.decision_name)

    def _spend(self, model: str, usage: Usage, cost: Cost | None) -> None:
        name = self._key.name if self._key is not None else NO_KEY
        self._services.spend.add(name, model, usage, cost.amount if cost else 0.0, cost.currency if cost else "")
        if self._key is not None:
            metrics = self._services.metrics
            metrics.count("headway_key_tokens", name, by=usage.prompt_tokens + usage.completion_tokens)
            if cost is not None:
                self.hold.charge(cost.amount, cost.currency)
                metrics.count("headway_key_spend", name, cost.currency, by=cost.amount)
