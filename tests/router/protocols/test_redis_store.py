"""Responses in a real Redis: shared by routers, forgotten in time, gone without harm."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import openai
import pytest

from tests.router.listener.live_front import LiveFront, run
from tests.router.stores.redis_process import redis_server
from tests.router.upstream.scripted_backend import ScriptedBackend, answers


def test_one_router_goes_on_where_another_stopped(tmp_path: Path) -> None:
    async def work(port: int) -> None:
        redis = {"address": f"127.0.0.1:{port}"}
        api: dict[str, Any] = {"global": {"services": {"response_api": {"store_backend": "redis", "redis": redis}}}}
        async with (
            ScriptedBackend([answers()]) as backend,
            LiveFront(backend, tmp_path / "a", **api) as one,
            LiveFront(backend, tmp_path / "b", **api) as other,
        ):
            made = await one.openai().responses.create(model="m", input="hi")
            followed = await other.openai().responses.create(model="m", input="more", previous_response_id=made.id)
            assert [message["content"] for message in backend.asked[1].body["messages"]] == ["hi", "hello", "more"]
            await other.openai().responses.delete(made.id)
            with pytest.raises(openai.NotFoundError):
                await one.openai().responses.retrieve(made.id)
            assert (await one.openai().responses.retrieve(followed.id)).output_text == "hello"
            for front in (one, other):
                await front.services.responses.close()

    with redis_server() as (port, _):
        run(lambda: work(port))
