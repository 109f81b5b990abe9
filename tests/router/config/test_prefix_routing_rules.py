"""What a configuration may say about prefix-aware placement."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from headway.errors import ConfigError
from headway.router.config.load import load_document

EVENTS = {"endpoint": "tcp://10.0.0.1:5557"}


def told(ref: dict[str, Any], **model: Any) -> list[tuple[str, str]]:
    """Reason and severity of what is found; errors too."""
    document = {
        "version": "v0.3",
        "listeners": [{"name": "public", "port": 8899}],
        "providers": {"defaults": {"model": "m"}, "models": [{"name": "m", "backend_refs": [{"endpoint": "10.0.0.1:8000", **ref}], **model}]},
    }
    try:
        return [(each.reason, each.severity) for each in load_document(yaml.safe_dump(document), {}).diagnostics]
    except ConfigError as error:
        return [(each.reason, each.severity) for each in getattr(error, "diagnostics", ())] or [(error.reason, "error")]


@pytest.mark.parametrize(
    ("ref", "model", "found"),
    [
        ({"kv_events": EVENTS}, {"prefix_routing": {}}, []),
        ({"kv_events": {"endpoint": "tcp://[fe80::1]:5557", "replay_endpoint": "ipc:///run/replay", "topic": "kv"}}, {"prefix_routing": {"most_ahead": 0}}, []),
        ({}, {}, []),
        ({"kv_events": EVENTS}, {}, [("prefix_routing_off", "warning")]),
        ({}, {"prefix_routing": {}}, [("prefix_routing_blind", "error")]),
        ({"kv_events": EVENTS}, {"prefix_routing": {}, "api_format": "anthropic"}, [("prefix_routing_blind", "error")]),
        ({"kv_events": EVENTS, "provider": "openai"}, {"prefix_routing": {}}, [("prefix_routing_blind", "error")]),
    ],
)
def test_events_need_a_reader_and_a_reader_events(ref: dict[str, Any], model: dict[str, Any], found: list[tuple[str, str]]) -> None:
    assert told(ref, **model) == found


@pytest.mark.parametrize(
    ("ref", "settings"),
    [
        ({"kv_events": {"endpoint": "tcp://*:5557"}}, {}),
        ({"kv_events": {"endpoint": "10.0.0.1:5557"}}, {}),
        ({"kv_events": {}}, {}),
        ({"kv_events": {**EVENTS, "replay_endpoint": "tcp://10.0.0.1"}}, {}),
        ({"kv_events": {**EVENTS, "port": 1}}, {}),
        ({"kv_events": EVENTS}, {"least_share": 0}),
        ({"kv_events": EVENTS}, {"least_share": 1.5}),
        ({"kv_events": EVENTS}, {"most_ahead": -1}),
        ({"kv_events": EVENTS}, {"tokenize_timeout": "0s"}),
        ({"kv_events": EVENTS}, {"max_blocks": 0}),
    ],
)
def test_values_that_cannot_be_are_refused(ref: dict[str, Any], settings: dict[str, Any]) -> None:
    found = told(ref, prefix_routing=settings)
    assert found
    assert {severity for _, severity in found} == {"error"}
