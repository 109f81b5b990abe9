"""Budgets: a request is let in when what it may cost is left, and that much is held back until it has ended."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from headway.router.config.document.listeners import KeyBudget
from headway.router.config.document.services import BudgetRedis
from headway.router.generation.generation import Generation
from headway.router.generation.services import Services
from headway.router.listener.errors import BudgetExceededError
from headway.router.listener.key_ring import Key
from headway.router.listener.price_bounds import FREE, PriceBound, bound_of
from headway.router.listener.usage import BYTES_PER_TOKEN
from headway.router.protocols.responses.store import StoreUnavailableError
from headway.router.selection.requirements import estimated_tokens
from headway.router.spend.period import period_end, period_start
from headway.router.spend.reservations import NO_HOLD, Hold

if TYPE_CHECKING:
    from headway.router.spend.shared_budgets import SharedHold

UNSAID_TOKENS: Final = 1024
"""Generated tokens that a request is taken to want when it names no limit."""
_LIMITS = ("max_completion_tokens", "max_tokens")
_SOON = 1  # seconds until requests under way may have ended


@dataclass(frozen=True, slots=True)
class Estimate:
    """`sure` is what the request may cost by its own words: its prompt, and its answer if it names a limit. `likely` counts an answer without limit too."""

    prompt_tokens: int
    sure: float
    likely: float


async def reserve(generation: Generation, key: Key | None, chat: Mapping[str, Any], raw_bytes: int) -> tuple[Hold | SharedHold, int | None]:
    """What is held back, and the estimated prompt tokens if they were needed. A request without a limit of tokens holds back what is left, if that is
    less than it may cost: the last of a budget can be spent, by one request at a time. Raises BudgetExceededError; StoreUnavailableError while budgets
    are counted in Redis, it does not answer and `fail_open` is off."""
    if key is None or key.budget is None:
        return NO_HOLD, None
    budget, settings = key.budget, generation.front.budget_settings
    estimate = estimated(chat, _bound(generation, str(chat["model"]), budget.currency), raw_bytes)
    if settings.store_backend == "memory":
        return _reserve_here(generation.services, key.name, budget, estimate), estimate.prompt_tokens
    shared = generation.services.shared.budgets(settings.redis or BudgetRedis())
    standing = await shared.reserve(key.name, budget, estimate.sure, estimate.likely)
    if standing is not None:
        if standing.hold is None:
            raise _refused(budget, standing.spent, standing.held, estimate.sure, standing.now)
        return standing.hold, estimate.prompt_tokens
    if not settings.fail_open:
        raise StoreUnavailableError("budgets cannot be counted: their Redis does not answer", fix="Try again in a moment.")
    return shared.beside(key.name, budget, _reserve_here(generation.services, key.name, budget, estimate)), estimate.prompt_tokens


def _reserve_here(services: Services, key: str, budget: KeyBudget, estimate: Estimate) -> Hold:
    """By what this process alone knows."""
    now = datetime.now(UTC)
    spent = services.spend.spent(key, budget.currency, period_start(budget.per, now.date()))
    held = services.reservations.held(key, budget.currency)
    left = budget.amount - spent - held
    if left <= 0 or estimate.sure > left:
        raise _refused(budget, spent, held, estimate.sure, now)
    return services.reservations.hold(key, budget.currency, min(estimate.likely, left))


def estimated(chat: Mapping[str, Any], bound: PriceBound, raw_bytes: int) -> Estimate:
    """`raw_bytes` is the size of the whole body, for routes without messages."""
    prompt = estimated_tokens(chat) if "messages" in chat else -(-raw_bytes // BYTES_PER_TOKEN)
    said = next((limit for name in _LIMITS if _is_count(limit := chat.get(name))), None)
    answers = chat["n"] if _is_count(chat.get("n")) else 1
    sure = bound.cost(prompt, (said or 0) * answers)
    return Estimate(prompt, sure, sure if said is not None else bound.cost(prompt, UNSAID_TOKENS * answers))


def _bound(generation: Generation, model: str, currency: str) -> PriceBound:
    name, front = generation.names.resolve(model), generation.front
    if name.recipe is not None:
        return front.price_bounds.get(name.recipe, {}).get(currency, FREE)
    price = front.prices.get(name.model or "")
    return bound_of(price) if price is not None and price.currency == currency else FREE


def _refused(budget: KeyBudget, spent: float, held: float, wanted: float, now: datetime) -> BudgetExceededError:
    end = period_end(budget.per, now)
    headers = {
        "x-headway-budget": f"{budget.amount:g}",
        "x-headway-budget-spent": f"{spent:.6f}",
        "x-headway-budget-reserved": f"{held:.6f}",
        "x-headway-budget-currency": budget.currency,
    }
    whole = f"its budget of {budget.amount:g} {budget.currency} {'in total' if end is None else f'per {budget.per}'}"
    renewal = "It does not renew." if end is None else f"It renews at {end:%Y-%m-%dT%H:%M:%SZ}."
    unspent = budget.amount - spent
    if unspent <= 0:
        told, fix = f"The key has spent {whole}. {renewal}", None
    elif wanted > unspent:
        told = f"The key has {unspent:.6f} {budget.currency} left of {whole}, and this request may cost {wanted:.6f}. {renewal}"
        fix = "Ask for fewer tokens (max_tokens), or send a shorter prompt."
    else:
        told, fix = f"Requests under way may use up what the key has left of {whole}. {renewal}", "Try again when some of them have ended."
        headers["retry-after"] = str(_SOON)
    if end is not None:
        headers.setdefault("retry-after", str(math.ceil((end - now).total_seconds())))
    return BudgetExceededError(told, headers=headers, fix=fix)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
