"""The routes of operators: what they read, whom they ask, what they answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headway.errors import HeadwayError
from tests.server.api import COMPLETIONS, Api, error, ok

Make = Callable[..., Api]
DEV_ROUTES = ("/sleep", "/wake_up", "/pause", "/resume", "/abort_requests", "/reset_mm_cache", "/swap_model")


class Operations:
    """Notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self.sleep_level: int | None = None
        self.is_paused = False
        self.failure: HeadwayError | None = None

    async def sleep(self, level: int, mode: str) -> None:
        self.asked.append(("sleep", level, mode))
        self.sleep_level = level

    async def wake_up(self, tags: Any = "all") -> None:
        self.asked.append(("wake_up", tags))
        self.sleep_level = None

    async def pause(self, mode: str, *, clear_cache: bool) -> None:
        self.asked.append(("pause", mode, clear_cache))
        self.is_paused = True

    async def resume(self) -> None:
        self.is_paused = False

    async def abort_requests(self, ids: list[str]) -> int:
        self.asked.append(("abort", ids))
        return len(ids)

    async def start_profile(self) -> None:
        if self.failure is not None:
            raise self.failure

    async def stop_profile(self) -> Path:
        return Path("trace")


@pytest.fixture
def steered(make_api: Make) -> tuple[Api, Operations]:
    api, operations = make_api(server_dev_mode=True), Operations()
    api.engine.operations = operations  # type: ignore[attr-defined]
    return api, operations


def test_the_routes_are_for_developers(api: Api) -> None:
    for path in DEV_ROUTES:
        error(api.post(path, {}), 404, "route_not_found")
    for path in ("/collective_rpc", "/update_weights", "/weight_info", "/scale_elastic_ep"):
        error(api.post(path, {}), 501, "route_not_built")


def test_sleep_and_wake_up(steered: tuple[Api, Operations]) -> None:
    api, operations = steered
    assert ok(api.get("/is_sleeping")) == {"is_sleeping": False}
    response = api.call("POST", "/sleep?level=2&mode=wait")
    assert (response.status_code, response.content) == (200, b"")
    assert ok(api.get("/is_sleeping")) == {"is_sleeping": True}
    assert b'vllm:engine_sleep_state{engine="0",model_name="tiny",sleep_state="discard_all"} 1.0' in api.get("/metrics").content
    assert api.call("POST", "/wake_up?tags=weights&tags=kv_cache").status_code == 200
    assert api.call("POST", "/wake_up").status_code == 200
    assert api.call("POST", "/sleep").status_code == 200
    assert operations.asked == [("sleep", 2, "wait"), ("wake_up", ["weights", "kv_cache"]), ("wake_up", "all"), ("sleep", 1, "abort")]
    error(api.call("POST", "/sleep?level=one"), 400, param="level")
    error(api.call("POST", "/sleep?mode=now"), 400, param="mode")


def test_pause_resume_and_abort(steered: tuple[Api, Operations]) -> None:
    api, operations = steered
    assert ok(api.call("POST", "/pause?mode=keep&clear_cache=false")) == {"status": "paused"}
    assert ok(api.get("/is_paused")) == {"is_paused": True}
    assert ok(api.call("POST", "/resume")) == {"status": "resumed"}
    assert ok(api.get("/is_paused")) == {"is_paused": False}
    assert ok(api.call("POST", "/pause?wait_for_inflight_requests=true")) == {"status": "paused"}
    assert ok(api.post("/abort_requests", {"request_ids": ["cmpl-a"]})) == {"status": "aborted", "aborted": 1}
    assert ok(api.post("/abort_requests", {})) == {"status": "aborted", "aborted": 0}
    assert operations.asked == [("pause", "keep", False), ("pause", "wait", True), ("abort", ["cmpl-a"]), ("abort", [])]
    for wrong in ("cmpl-a", [1], [""], ["a"] * 5000):
        error(api.post("/abort_requests", {"request_ids": wrong}), 400, param="request_ids")
    error(api.call("POST", "/pause?clear_cache=maybe"), 400, param="clear_cache")


def test_caches_and_profiles(steered: tuple[Api, Operations]) -> None:
    api, operations = steered
    assert ok(api.post("/reset_mm_cache", None)) == {"reset": True}
    assert ok(api.post("/reset_prefix_cache?reset_running_requests=true&reset_external=true", None)) == {"reset": True}
    error(api.post("/reset_prefix_cache?reset_running_requests=perhaps", None), 400, param="reset_running_requests")
    assert api.post("/start_profile", None).status_code == 200
    operations.failure = HeadwayError("a profile is running", reason="profile_active")
    error(api.post("/start_profile", None), 409, "profile_active")
    assert api.post("/stop_profile", None).status_code == 200


def test_a_held_engine_is_well_and_never_stalled(make_api: Make) -> None:
    api = make_api(health_stall_seconds=1e-9)
    for held in ("asleep", "paused"):
        api.engine.status = replace(api.engine.status, requests=1, held=held)
        assert ok(api.get("/health")) == {"status": held}
    api.engine.status = replace(api.engine.status, held=None)
    asyncio.run(asyncio.sleep(0.01))
    assert api.get("/health").status_code == 503
    assert api.post(COMPLETIONS, {"prompt": "Say"}).status_code == 200
