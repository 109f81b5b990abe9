"""Admission: whether a caller may ask for a model now."""

from __future__ import annotations

import math
from datetime import UTC, datetime

from headway.router.generation.services import Services
from headway.router.listener.errors import BudgetExceededError, ModelNotAllowedError
from headway.router.listener.front import ListenerRules
from headway.router.listener.key_ring import Key
from headway.router.spend.period import period_start, seconds_left


def require_model_allowed(model: str, rules: ListenerRules, key: Key | None) -> None:
    """The exact name in the request must be granted by the listener and by the key. Raises ModelNotAllowedError."""
    if not model_allowed(model, rules, key):
        shown = model if len(model) <= 100 else model[:100] + "..."
        raise ModelNotAllowedError(f'model "{shown}" is not allowed here', param="model", fix="GET /v1/models lists the names that are.")


def model_allowed(model: str, rules: ListenerRules, key: Key | None) -> bool:
    if rules.models is not None and model not in rules.models:
        return False
    return key is None or key.models is None or model in key.models


def require_budget(services: Services, key: Key | None) -> None:
    """Raises BudgetExceededError once the key has spent what it may in its period."""
    if key is None or key.budget is None:
        return
    budget, now = key.budget, datetime.now(UTC)
    spent = services.spend.spent(key.name, budget.currency, period_start(budget.per, now.date()))
    if spent < budget.amount:
        return
    left = seconds_left(budget.per, now)
    headers = {"x-headway-budget": f"{budget.amount:g}", "x-headway-budget-spent": f"{spent:.6f}", "x-headway-budget-currency": budget.currency}
    if left is not None:
        headers["retry-after"] = str(math.ceil(left))
    period = "in total" if left is None else f"per {budget.per}"
    raise BudgetExceededError(f"The key has spent its budget of {budget.amount:g} {budget.currency} {period}", headers=headers)
