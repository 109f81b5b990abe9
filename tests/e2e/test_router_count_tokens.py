"""count_tokens through a router before a real engine: what is counted is what the engine then says that the prompt had."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anthropic
import pytest

from tests.e2e.router_process import started_router, two_models
from tests.e2e.tiny_server import tiny_server

pytestmark = [pytest.mark.e2e, pytest.mark.long]
TALK: list[Any] = [{"role": "user", "content": "hello there"}, {"role": "assistant", "content": "good day"}, {"role": "user", "content": "count me"}]


def test_what_is_counted_is_what_the_engine_counts(tmp_path: Path) -> None:
    with tiny_server(tmp_path / "engine") as engine:
        served = engine.get("/v1/models").json()["data"][0]["id"]
        document = two_models(engine.url.removeprefix("http://"), engine.url.removeprefix("http://"))
        for model in document["providers"]["models"]:
            model["provider_model_id"] = served
        with started_router(tmp_path / "router", document) as router:
            client = anthropic.Anthropic(base_url=router.url, api_key="none", max_retries=0)
            counted = client.messages.with_raw_response.count_tokens(model="vllm-sr/auto", system="be nice", messages=TALK)
            assert counted.headers["x-headway-token-count"] == "backend"
            answer = client.messages.create(model="vllm-sr/auto", system="be nice", messages=TALK, max_tokens=1)
            assert counted.parse().input_tokens == answer.usage.input_tokens > 10
