"""Operations on real processes: another model behind a name under load, a server that sleeps, and what ends in the middle of it."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import httpx
import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from headway.host.memory_budget import memory_budget
from tests.e2e.served_model import Served
from tests.e2e.tiny_model import tiny_model
from tests.e2e.tiny_server import end, tiny_server

DEV = {"VLLM_SERVER_DEV_MODE": "1"}
ASKED = {"prompt": "hello there", "max_tokens": 40, "ignore_eos": True, "temperature": 0}


def other_model(folder: Path) -> Path:
    """As large as the tiny one, with other weights."""
    home = tiny_model(folder / "other")
    torch.manual_seed(77)
    AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(home), dtype=torch.float32).save_pretrained(home)
    return home


def post(served: Served, path: str, body: object = None) -> httpx.Response:
    return httpx.post(served.url + path, json=body, timeout=120, trust_env=False)


def whole(served: Served) -> str:
    answer = post(served, "/v1/completions", ASKED)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["choices"][0]["text"])


def streamed(client: httpx.Client) -> str:
    """The text of one streamed answer, every part of which must be there."""
    with client.stream("POST", "/v1/completions", json={**ASKED, "stream": True}) as response:
        lines = [line.removeprefix("data: ") for line in response.iter_lines() if line]
        assert response.status_code == 200, lines
    assert lines.pop() == "[DONE]", lines[-2:]
    chunks = [json.loads(line) for line in lines]
    assert chunks[-1]["choices"][0]["finish_reason"] == "length", chunks[-1]
    return "".join(chunk["choices"][0]["text"] for chunk in chunks)


class Streams:
    """Eight clients that stream answers until `end`; `failures` are theirs."""

    def __init__(self, served: Served):
        self.texts: list[str] = []
        self.failures: list[str] = []
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(served.url,)) for _ in range(8)]
        for thread in self._threads:
            thread.start()

    def _run(self, url: str) -> None:
        with httpx.Client(base_url=url, timeout=60, trust_env=False) as client:
            while not self._over.is_set():
                try:
                    self.texts.append(streamed(client))
                except (AssertionError, httpx.HTTPError) as error:
                    self.failures.append(repr(error))

    def until(self, count: int) -> None:
        deadline = time.monotonic() + 60
        while len(self.texts) < count:
            assert time.monotonic() < deadline
            assert not self.failures, self.failures[:3]
            time.sleep(0.02)

    def end(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(60)


@pytest.mark.long
def test_another_model_takes_over_without_a_refused_or_broken_request(tmp_path: Path) -> None:
    other = other_model(tmp_path)
    with tiny_server(tmp_path, "--kv-cache-memory-bytes", "16M", **DEV) as served:
        name = served.get("/v1/models").json()["data"][0]["id"]
        old = whole(served)
        streams = Streams(served)
        streams.until(16)
        swap = post(served, "/swap_model", {"model": str(other)})
        assert swap.status_code == 200, swap.text
        assert swap.json()["model"] == str(other)
        new = whole(served)
        streams.until(len(streams.texts) + 16)
        back = post(served, "/swap_model", {"model": swap.json()["previous"]})
        assert back.status_code == 200, back.text
        streams.until(len(streams.texts) + 16)
        streams.end()
        assert streams.failures == []
        assert new != old
        assert set(streams.texts) == {old, new}, "every answer is wholly of one model"
        assert whole(served) == old
        models = served.get("/v1/models").json()["data"]
        assert [model["id"] for model in models] == [name]
        deadline = time.monotonic() + 30
        while served.get("/swap_model").json() != {"state": "idle", "model": swap.json()["previous"], "retiring": 0}:
            assert time.monotonic() < deadline, served.get("/swap_model").text
            time.sleep(0.05)
        end(served)


@pytest.mark.long
def test_a_swap_that_fails_leaves_everything_as_it_is(tmp_path: Path) -> None:
    with tiny_server(tmp_path, **DEV) as served:
        before = whole(served)
        missing = post(served, "/swap_model", {"model": str(tmp_path / "nowhere")})
        assert (missing.status_code, missing.json()["error"]["reason"]) == (400, "swap_failed"), missing.text
        large = post(served, "/swap_model", {"model": str(tmp_path / "tiny"), "kv_cache_memory_bytes": memory_budget().limit})
        refused = large.json()["error"]
        assert (large.status_code, refused["reason"]) == (507, "does_not_fit"), large.text
        assert "weights" in refused["message"]
        assert "are available" in refused["message"]
        unknown = post(served, "/swap_model", {"model": "x", "middleware": "os:system"})
        assert (unknown.status_code, unknown.json()["error"]["param"]) == (400, "middleware")
        assert served.get("/swap_model").json()["state"] == "failed"
        assert whole(served) == before
        end(served)


@pytest.mark.long
def test_a_server_sleeps_wakes_and_can_be_ended_in_its_sleep(tmp_path: Path) -> None:
    with tiny_server(tmp_path, "--enable-sleep-mode", **DEV) as served:
        before = whole(served)
        for level in (1, 2):
            assert post(served, f"/sleep?level={level}").status_code == 200
            refused = post(served, "/v1/completions", ASKED)
            assert (refused.status_code, refused.json()["error"]["reason"]) == (503, "asleep")
            assert int(refused.headers["retry-after"]) > 0
            assert (served.get("/health").status_code, served.get("/health").json()) == (200, {"status": "asleep"})
            assert served.get("/v1/models").status_code == 200
            assert post(served, "/wake_up").status_code == 200
            assert whole(served) == before
        assert post(served, "/sleep").status_code == 200
        end(served)
        assert not [path for path in (tmp_path / "sleep").rglob("*") if path.is_file()]
