"""Spend summed by key, model, day or all of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from headway.router.spend.ledger import Spent

GROUPS = ("key", "model", "day")


def summed(entries: Iterable[Spent], by: Sequence[str]) -> list[Spent]:
    """One entry for each combination of the members `by` and each currency; members that are not in `by` are "". The dearest come first."""
    found: dict[tuple[str, ...], Spent] = {}
    for entry in entries:
        day, key, model = (str(getattr(entry, name)) if name in by else "" for name in ("day", "key", "model"))
        total = found.setdefault((day, key, model, entry.currency), Spent(day, key, model, entry.currency))
        total.requests += entry.requests
        total.estimated += entry.estimated
        total.prompt_tokens += entry.prompt_tokens
        total.completion_tokens += entry.completion_tokens
        total.cost += entry.cost
    return sorted(found.values(), key=lambda entry: (-entry.cost, entry.day, entry.key, entry.model))
