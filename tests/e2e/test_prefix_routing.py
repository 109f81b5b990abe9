"""Two real engines that publish KV events and a real router: requests with a shared beginning go to the engine that holds it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.router_process import PUBLIC, RunningRouter, started_router
from tests.e2e.served_model import Served
from tests.e2e.tiny_server import free_port, tiny_server

pytestmark = [pytest.mark.e2e, pytest.mark.long]
TALKS = [f"This is talk {number}: " + f"a long introduction of number {number}, said once more. " * 12 for number in range(4)]


def events_flag(port: int, replay: int) -> tuple[str, str]:
    config = f'{{"enable_kv_cache_events": true, "endpoint": "tcp://127.0.0.1:{port}", "bind": true, "replay_endpoint": "tcp://127.0.0.1:{replay}"}}'
    return "--kv-events-config", config


def document(engines: dict[str, tuple[Served, int, int]]) -> dict[str, Any]:
    refs = [
        {"name": name, "endpoint": served.url.removeprefix("http://"), "kv_events": {"endpoint": f"tcp://127.0.0.1:{port}", "replay_endpoint": f"tcp://127.0.0.1:{replay}"}}
        for name, (served, port, replay) in engines.items()
    ]  # fmt: skip
    model = {"name": "m", "backend_refs": refs, "prefix_routing": {"tokenize_timeout": "20s", "stale_after": "1h"}}
    return {
        "version": "v0.3",
        "listeners": [{"name": "public", "address": "127.0.0.1", "port": PUBLIC}],
        "providers": {"defaults": {"model": "m"}, "models": [model]},
    }


def say(router: RunningRouter, text: str) -> None:
    answer = router.chat(text, model="m", max_tokens=2)
    assert answer.status_code == 200, answer.text


def until(router: RunningRouter, condition: Callable[[], bool]) -> None:
    router.until(condition, seconds=240)


def blocks(router: RunningRouter) -> float:
    return sum(router.metric(f'headway_prefix_index_blocks{{backend="m/{name}",model="m"}}') for name in "ab")


def test_requests_go_where_their_beginning_is_held(tmp_path: Path) -> None:
    ports = [free_port() for _ in range(4)]
    flags = ("--served-model-name", "m", "--max-model-len", "4096")
    with (
        tiny_server(tmp_path / "a", *flags, *events_flag(ports[0], ports[1])) as first,
        tiny_server(tmp_path / "b", *flags, *events_flag(ports[2], ports[3])) as second,
        started_router(tmp_path / "router", document({"a": (first, ports[0], ports[1]), "b": (second, ports[2], ports[3])})) as router,
    ):
        engines = (first, second)
        for talk in TALKS:  # each engine gets two of them
            known = blocks(router)
            say(router, talk)
            until(router, lambda known=known: blocks(router) > known)  # type: ignore[misc]
        assert router.metric('headway_prefix_placements_total{model="m",outcome="held"}') == 0
        before = [each.metric("vllm:prefix_cache_hits_total") for each in engines]
        asked = [each.metric("vllm:prompt_tokens_total") for each in engines]
        for turn in range(3):
            for talk in TALKS:
                say(router, talk + f"And now question {turn}?")
        hits = [each.metric("vllm:prefix_cache_hits_total") - old for each, old in zip(engines, before, strict=True)]
        tokens = [each.metric("vllm:prompt_tokens_total") - old for each, old in zip(engines, asked, strict=True)]
        assert router.metric('headway_prefix_placements_total{model="m",outcome="held"}') == 12
        assert min(hits) > 0
        assert sum(hits) > 0.85 * sum(tokens)


def test_an_engine_that_dies_and_comes_back_is_known_to_hold_nothing(tmp_path: Path) -> None:
    """Its requests are answered by the other one meanwhile."""
    http, events, replay = (free_port() for _ in range(3))
    flags = ("--served-model-name", "m", "--max-model-len", "4096")
    mortal = (*flags, *events_flag(events, replay))
    held = 'headway_prefix_placements_total{model="m",outcome="held"}'
    known = 'headway_prefix_index_blocks{backend="m/b",model="m"}'
    with tiny_server(tmp_path / "a", *flags) as first:
        found = document({"a": (first, events, replay), "b": (Served(first.process, f"http://127.0.0.1:{http}", first.log), events, replay)})
        del found["providers"]["models"][0]["backend_refs"][0]["kv_events"]
        with started_router(tmp_path / "router", found) as router:
            with tiny_server(tmp_path / "b", *mortal, port=http):
                until(router, lambda: (say(router, TALKS[0]), router.metric(known) > 0)[1])
                until(router, lambda: (say(router, TALKS[0]), router.metric(held) > 0)[1])
            for _ in range(3):
                say(router, TALKS[0])
            with tiny_server(tmp_path / "b", *mortal, port=http):
                until(router, lambda: router.metric('headway_prefix_event_batches_total{backend="m/b",model="m",outcome="restarted"}') == 1)
                until(router, lambda: router.metric(known) == 0)
                before = router.metric(held)
                until(router, lambda: (say(router, TALKS[1]), router.metric(held) > before)[1])
                assert router.metric(known) > 0
