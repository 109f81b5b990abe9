"""What an answer costs: each kind of token at its own rate."""

from __future__ import annotations

from typing import Any

import pytest

from headway.router.config.document.document import Document
from headway.router.listener.prices import compile_prices
from headway.router.listener.usage import usage_of
from headway.router.upstream.formats.anthropic_answer import completion_of_message

RATES = {"prompt_per_1m": 1.0, "completion_per_1m": 10.0, "cached_input_per_1m": 0.5, "cache_write_per_1m": 2.0, "cache_write_1h_per_1m": 4.0}


def cost(counts: dict[str, Any], **rates: float) -> float:
    """Of a message of Anthropic's API with these counts, in millionths."""
    models = [{"name": "m", "pricing": {**RATES, **rates}}, {"name": "free", "pricing": {}}]
    prices = compile_prices(Document.model_validate({"version": "v0.3", "providers": {"models": models}}))
    assert set(prices) == {"m"}
    message = {"id": "1", "model": "m", "content": [{"type": "text", "text": "x"}], "stop_reason": "end_turn", "usage": {"output_tokens": 3, **counts}}
    usage = usage_of(completion_of_message(message))
    assert usage is not None
    return prices["m"].cost(usage) * 1e6


WRITTEN = {"input_tokens": 7, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 100, "cache_creation": {"ephemeral_1h_input_tokens": 60}}


@pytest.mark.parametrize(
    ("counts", "rates", "expected"),
    [
        ({"input_tokens": 7}, {}, 7 + 30),
        ({"input_tokens": 7, "cache_read_input_tokens": 20}, {}, 7 + 10 + 30),
        (WRITTEN, {}, 7 + 10 + 40 * 2 + 60 * 4 + 30),
        (WRITTEN, {"cache_write_1h_per_1m": 0.0}, 7 + 10 + 100 * 2 + 30),
        (WRITTEN, {"cache_write_per_1m": 0.0}, 7 + 40 + 10 + 60 * 4 + 30),
        (WRITTEN, {"cached_input_per_1m": 0.0}, 7 + 20 + 40 * 2 + 60 * 4 + 30),
    ],
)
def test_each_kind_of_token_has_its_rate(counts: dict[str, Any], rates: dict[str, float], expected: float) -> None:
    assert cost(counts, **rates) == pytest.approx(expected)
