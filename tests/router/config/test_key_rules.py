"""Keys that would open nothing, open twice, or have a budget that nothing spends."""

from __future__ import annotations

from typing import Any

import pytest

from headway.router.config.document.document import Document
from headway.router.config.rules.keys import listener_keys, opened_models


def document(keys: list[dict[str, Any]], models: list[str] | None = None, currency: str = "USD", **listener: Any) -> Document:
    pricing = {"currency": currency, "prompt_per_1m": 1.0}
    providers = {"models": [{"name": "m", "pricing": pricing, "backend_refs": [{"endpoint": "127.0.0.1:1"}]}]}
    place = {"name": "p", "port": 1, "keys": keys, **({"models": models} if models else {}), **listener}
    return Document.model_validate({"version": "v0.3", "listeners": [place], "providers": providers})


@pytest.mark.parametrize(
    ("keys", "reasons"),
    [
        ([{"name": "a", "key": "1"}, {"name": "b", "key": "2", "budget": {"amount": 1}}], []),
        ([{"name": "a", "key": "1"}, {"name": "a", "key": "2"}], ["key_repeated"]),
        ([{"name": "a", "key": "1"}, {"name": "b", "key": "1"}], ["key_repeated"]),
        ([{"name": "a", "key": "shared"}], ["key_repeated"]),
        ([{"name": "a", "key": "1", "budget": {"amount": 1, "currency": "EUR"}}], ["budget_unreachable"]),
    ],
)
def test_keys(keys: list[dict[str, Any]], reasons: list[str]) -> None:
    assert [found.reason for found in listener_keys(document(keys, api_keys=["shared"]))] == reasons


def test_names_that_open_nothing_are_warned_of_with_the_nearest_one() -> None:
    found = list(opened_models(document([{"name": "a", "key": "1", "models": ["m", "vllm-sr/auto", "vllm-sr/atuo"]}], models=["m", "mm"])))
    assert [(each.path, each.severity) for each in found] == [(("listeners", 0, "models", 1), "warning"), (("listeners", 0, "keys", 0, "models", 2), "warning")]
    assert "vllm-sr/auto" in (found[1].fix or "")


def test_a_key_may_open_a_model_that_the_listener_grants_to_system_one() -> None:
    keys = [{"name": "a", "key": "1", "models": ["judge"]}]
    assert list(opened_models(document(keys, systemone={"models": ["judge"], "max_deadline_ms": 1000}))) == []
