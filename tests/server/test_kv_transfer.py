"""The two steps of a proxy over HTTP: prefill at one server, the answer from another."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headway.engine.async_engine import AsyncEngine
from headway.engine.config import EngineConfig
from headway.engine.core import Observers
from headway.telemetry.metrics import EngineMetrics
from tests.cases.case_server import CaseServer, case_server
from tests.e2e.tiny_model import tiny_model
from tests.server.api import CHAT, COMPLETIONS, error

TALK = [{"role": "user", "content": "Tell me about the sea and the ships that go on it, and do it in many words."}]
# What the proxies of vLLM send in the first step.
FIRST = {"do_remote_decode": True, "do_remote_prefill": False, "remote_engine_id": None, "remote_block_ids": None, "remote_host": None, "remote_port": None}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("kv-transfer"))


def server(model: Path, role: str | None) -> Any:
    metrics = EngineMetrics("tiny", max_model_len=256)
    transfer = {"kv_connector": "NixlConnector", "kv_role": role, "kv_port": 0} if role else {}
    config = EngineConfig(str(model), max_model_len=256, num_gpu_blocks_override=64, served_model_name=("tiny",), kv_transfer_config=transfer)
    engine = AsyncEngine(config, Observers(metrics.on_step, metrics.on_request, on_transfer=metrics.on_transfer))
    engine.start()
    asyncio.run(engine.ready())
    return case_server(engine, metrics)


@pytest.fixture(scope="module")
def producer(model: Path) -> Iterator[CaseServer]:
    with server(model, "kv_producer") as running:
        yield running


@pytest.fixture(scope="module")
def consumer(model: Path) -> Iterator[CaseServer]:
    with server(model, "kv_consumer") as running:
        yield running


def test_the_two_steps_of_a_proxy(producer: CaseServer, consumer: CaseServer) -> None:
    plain = producer.chat(messages=TALK).json()
    params = producer.chat(messages=TALK, max_tokens=1, kv_transfer_params=FIRST).json()["kv_transfer_params"]
    assert params["do_remote_prefill"] is True
    assert params["remote_host"] == "127.0.0.1"
    chunks = consumer.chunks(CHAT, messages=TALK, stream_options={"include_usage": True}, kv_transfer_params=params)
    assert "".join(c["choices"][0]["delta"].get("content") or "" for c in chunks if c["choices"]) == plain["choices"][0]["message"]["content"]
    assert consumer.metric("headway:kv_transfers_total", 'outcome="pulled"') == 1
    full = (chunks[-1]["usage"]["prompt_tokens"] - 1) // 16 * 16
    assert full > 0
    assert consumer.metric("vllm:prompt_tokens_by_source_total", 'source="external_kv_transfer"') == full
    producer.check_alive()
    consumer.check_alive()


def test_completions_take_them_too(producer: CaseServer, consumer: CaseServer) -> None:
    prompt = list(range(5, 60))
    plain = producer.complete(prompt=prompt).json()
    assert plain["kv_transfer_params"] is None
    params = producer.complete(prompt=prompt, max_tokens=1, kv_transfer_params=FIRST).json()["kv_transfer_params"]
    answer = consumer.complete(prompt=prompt, kv_transfer_params=params).json()
    assert answer["choices"][0]["text"] == plain["choices"][0]["text"]
    assert consumer.metric("headway:kv_transfers_total", 'outcome="pulled"') >= 1
    producer.check_alive()
    consumer.check_alive()


def test_what_cannot_be_moved_is_refused(producer: CaseServer, consumer: CaseServer) -> None:
    for path, body, message in (
        (CHAT, {"messages": TALK, "stream": True}, "stands in a whole answer"),
        (COMPLETIONS, {"prompt": ["a", "b"]}, "belongs to one prompt, got 2"),
        (COMPLETIONS, {"prompt": "a", "use_beam_search": True, "n": 2}, "use_beam_search"),
        (COMPLETIONS, {"prompt": "a", "kv_transfer_params": {**FIRST, "do_remote_prefill": True}}, "exclude each other"),
    ):
        found = error(producer.post(path, {"kv_transfer_params": FIRST, **body}), 400, "invalid_request", "kv_transfer_params")
        assert message in found["message"]
    found = error(consumer.post(CHAT, {"messages": TALK, "kv_transfer_params": FIRST}), 400, "invalid_request", "kv_transfer_params")
    assert "goes to a producer" in found["message"]
    error(producer.post("/v1/chat/completions/batch", {"messages": [TALK], "kv_transfer_params": FIRST}), 400, "not_built", "kv_transfer_params")


def test_a_server_without_the_flag_says_so(model: Path) -> None:
    with server(model, None) as plain:
        found = error(plain.post(CHAT, {"messages": TALK, "kv_transfer_params": FIRST}), 400, "invalid_request", "kv_transfer_params")
        assert "--kv-transfer-config" in found["message"]
        nothing: dict[str, Any] = dict.fromkeys(FIRST)
        assert plain.chat(kv_transfer_params={**nothing, "do_remote_decode": False}).status_code == 200
