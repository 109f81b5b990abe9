"""Two `headway serve` processes: one computes prompts, the other answers, and the first is killed at the worst moments."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.router_process import PUBLIC, started_router
from tests.e2e.served_model import Served
from tests.e2e.tiny_server import tiny_server
from tests.engine.kv_transfer.engines import Relay, until

KEY = "0123456789abcdef0123456789abcdef"
PROMPTS = [[5 + (3 * talk + i) % 300 for i in range(200)] for talk in range(12)]


@contextmanager
def serving(folder: Path, role: str) -> Iterator[Served]:
    folder.mkdir()
    transfer = {"kv_connector": "HeadwayConnector", "kv_role": role, "kv_port": 0, "kv_connector_extra_config": {"pull_timeout": 300}}
    with tiny_server(folder, "--served-model-name", "m", "--kv-transfer-config", json.dumps(transfer), HEADWAY_KV_TRANSFER_KEY=KEY) as served:
        yield served


def complete(served: Served, prompt: list[int], max_tokens: int = 16, transfer: dict[str, Any] | None = None) -> dict[str, Any]:
    body = {"prompt": prompt, "max_tokens": max_tokens, "temperature": 0, "ignore_eos": True, "return_token_ids": True, "kv_transfer_params": transfer}
    answer = httpx.post(served.url + "/v1/completions", json=body, trust_env=False, timeout=300)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def ids(answer: dict[str, Any]) -> list[int]:
    found: list[int] = answer["choices"][0]["token_ids"]
    return found


@pytest.mark.long
def test_killed_before_during_and_after_the_transfer(tmp_path: Path) -> None:
    """Twelve answers in flight when the producer dies: all are complete, and those of an ordinary server."""
    with ExitStack() as stack:
        producer = stack.enter_context(serving(tmp_path / "prefill", "kv_producer"))
        consumer = stack.enter_context(serving(tmp_path / "decode", "kv_consumer"))
        wanted = [ids(complete(producer, prompt)) for prompt in PROMPTS]  # it answers ordinary requests, too
        sources = [complete(producer, prompt, 1, {"do_remote_decode": True})["kv_transfer_params"] for prompt in PROMPTS]
        dead, reached = threading.Event(), threading.Semaphore(0)

        def hold(data: bytes, at: int) -> bytes | None:
            """What the kernel still had of a dead process would come; of a dead host it does not."""
            if at + len(data) <= 10_000:
                return data
            reached.release()  # in the middle of the blocks
            dead.wait(240)
            return None

        relay = Relay(sources[0]["remote_port"], hold)
        with ThreadPoolExecutor(len(PROMPTS)) as clients:
            assert ids(complete(consumer, PROMPTS[0], transfer=sources[0])) == wanted[0]
            assert consumer.metric("headway:kv_transfers_total") == 1
            held = [clients.submit(complete, consumer, PROMPTS[i], 16, {**sources[i], "remote_port": relay.port}) for i in range(1, 7)]
            for _ in held:
                assert reached.acquire(timeout=120)
            producer.process.kill()
            producer.process.wait(20)
            dead.set()
            late = [clients.submit(complete, consumer, PROMPTS[i], 16, sources[i]) for i in range(7, 12)]
            assert [ids(each.result()) for each in [*held, *late]] == wanted[1:]
        relay.close()
        consumer.wait_for("idle")
        lines = [line for line in consumer.get("/metrics").text.splitlines() if line.startswith("headway:kv_transfers_total")]
        counted = {line.split('outcome="')[1].split('"')[0]: float(line.rsplit(" ", 1)[1]) for line in lines}
        assert counted == {"pulled": 1, "peer_closed": 6, "unreachable": 5}
        until(lambda: consumer.metric("vllm:kv_cache_usage_perc") == 0)
        assert ids(complete(consumer, PROMPTS[3])) == wanted[3]


@pytest.mark.long
def test_the_router_takes_both_steps_and_goes_on_without_the_producer(tmp_path: Path) -> None:
    text = "Tell me about the sea and about the ships that go on it, in as many words as you like."
    with ExitStack() as stack:
        producer = stack.enter_context(serving(tmp_path / "prefill", "kv_producer"))
        consumer = stack.enter_context(serving(tmp_path / "decode", "kv_consumer"))
        refs = {name: [{"name": name, "endpoint": served.url.removeprefix("http://")}] for name, served in (("p", producer), ("d", consumer))}
        models = [{"name": "m", "backend_refs": refs["d"], "prefill_refs": refs["p"]}]
        document = {
            "version": "v0.3",
            "listeners": [{"name": "public", "address": "127.0.0.1", "port": PUBLIC}],
            "providers": {"defaults": {"model": "m"}, "models": models},
        }
        router = stack.enter_context(started_router(tmp_path / "router", document))

        def ask(text: str, **more: Any) -> str:
            answer = router.chat(text, model="m", max_tokens=8, temperature=0, **more)
            assert answer.status_code == 200, answer.text
            return str(answer.text if more else answer.json()["choices"][0]["message"]["content"])

        def count(outcome: str) -> float:
            return router.metric(f'headway_prefills_total{{backend="m/prefill/p",model="m",outcome="{outcome}"}}')

        said = ask(text)
        assert consumer.metric("headway:kv_transfers_total") == 1
        assert consumer.metric("vllm:prompt_tokens_by_source_total") > 0
        assert ask("Another one. " + text, stream=True).endswith("data: [DONE]\n\n")
        assert consumer.metric("headway:kv_transfer_bytes_total") > 0
        assert count("ok") == 2
        producer.process.kill()
        producer.process.wait(20)
        assert ask(text) == said
        assert len(ask("A third one. " + text)) > 0
        assert count("ok") == 2
        assert count("connect_failed") + count("closed") + count("resting") == 2
