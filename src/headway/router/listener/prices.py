"""Prices of tokens, by model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headway.router.config.document.document import Document
from headway.router.listener.usage import Usage

_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """Per million tokens. `cached` are prompt tokens that the backend found in its cache, `cache_write` those that it put there; a rate of 0 for
    one of these means that of other prompt tokens. `cache_write_1h` is for what the backend keeps for an hour; 0 means `cache_write`."""

    currency: str = "USD"
    prompt: float = 0.0
    completion: float = 0.0
    cached: float = 0.0
    cache_write: float = 0.0
    cache_write_1h: float = 0.0

    def cost(self, usage: Usage) -> float:
        """In `currency`."""
        cached = usage.cached_tokens if self.cached else 0
        hour = usage.cache_write_1h_tokens if self.cache_write_1h else 0
        written = max(0, usage.cache_write_tokens - hour) if self.cache_write else 0
        fresh = max(0, usage.prompt_tokens - cached - written - hour)
        parts = (fresh, self.prompt), (cached, self.cached), (written, self.cache_write), (hour, self.cache_write_1h), (usage.completion_tokens, self.completion)
        return sum(tokens * rate for tokens, rate in parts) / _MILLION


def compile_prices(document: Document) -> Mapping[str, Price]:
    """Models without pricing, or with one in which all is 0, are left out."""
    found: dict[str, Price] = {}
    for model in (document.providers and document.providers.models) or ():
        pricing = model.pricing
        if model.name and pricing is not None:
            price = Price(
                pricing.currency or "USD", pricing.prompt_per_1m or 0.0, pricing.completion_per_1m or 0.0,
                pricing.cached_input_per_1m or 0.0, pricing.cache_write_per_1m or 0.0, pricing.cache_write_1h_per_1m or 0.0,
            )  # fmt: skip
            if any((price.prompt, price.completion, price.cached, price.cache_write, price.cache_write_1h)):
                found[model.name] = price
    return found
