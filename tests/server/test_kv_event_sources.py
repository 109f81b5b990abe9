"""GET /kv_event_sources: where events are published, or that nothing is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.server.api import Api, ok
from tests.server.scripted_engine import ScriptedEngine

SOURCE = {"data_parallel_rank": 0, "endpoint": "tcp://10.0.0.1:5557", "replay_endpoint": None, "topic": "kv"}
PUBLISHED = {"enable_kv_cache_events": True, "endpoint": "tcp://10.0.0.1:5557", "topic": "kv"}


@pytest.mark.parametrize(
    ("config", "sources"),
    [({}, []), (PUBLISHED, [SOURCE]), ({**PUBLISHED, "publisher": "null"}, []), ({**PUBLISHED, "replay_endpoint": "ipc:///run/r"}, [{**SOURCE, "replay_endpoint": "ipc:///run/r"}])],
)
def test_the_addresses_are_told(make_api: Callable[..., Api], config: dict[str, Any], sources: list[dict[str, Any]]) -> None:
    assert ok(make_api(ScriptedEngine(kv_events_config=config)).get("/kv_event_sources")) == sources
