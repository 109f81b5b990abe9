"""Several processes that compute one model: the same answers as one, and what happens when any of them is killed or hangs under load."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from tests.e2e.served_model import Served
from tests.e2e.tiny_server import tiny_server

pytestmark = pytest.mark.long

CLIENTS = 16
PATIENCE = 10  # seconds of silence after which a rank has failed
ENOUGH = 240.0  # for anything that must happen; nothing here is about how fast
ONE = ("--dtype", "float32")
FOUR = (*ONE, "--tensor-parallel-size", "2", "--pipeline-parallel-size", "2", "--distributed-timeout-seconds", str(PATIENCE))
PROMPTS = ["hello there", "what is", "one two three", "a much longer prompt than the others are, with many more words in it"]


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with tiny_server(tmp_path_factory.mktemp("ranks"), *FOUR) as served:
        yield served


def answers(served: Served) -> list[dict[str, Any]]:
    body = {"max_tokens": 48, "temperature": 0, "ignore_eos": True, "logprobs": 2, "echo": True}
    found = []
    for prompt in PROMPTS:
        answer = httpx.post(f"{served.url}/v1/completions", json={**body, "prompt": prompt}, timeout=ENOUGH, trust_env=False)
        assert answer.status_code == 200, answer.text
        found.append(answer.json()["choices"][0])
    return found


def health(served: Served) -> httpx.Response:
    return httpx.get(f"{served.url}/health", timeout=30, trust_env=False)


def until_ready(served: Served) -> None:
    end = time.monotonic() + ENOUGH
    while health(served).status_code != 200:
        assert served.process.poll() is None, served.log.read_text()[-4000:]
        assert time.monotonic() < end, served.log.read_text()[-4000:]
        time.sleep(0.1)


def workers(served: Served) -> dict[int, psutil.Process]:
    """Rank -> process."""
    found = [child for child in psutil.Process(served.process.pid).children() if any("distributed.worker" in word for word in child.cmdline())]
    return dict(enumerate(sorted(found, key=lambda child: child.pid), start=1))


class Clients:
    """16 of them, each with one stream after another until `stop`; `ends` says how each stream ended."""

    def __init__(self, served: Served):
        self.ends: list[str] = []
        self._url = served.url
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._run) for _ in range(CLIENTS)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(ENOUGH)
            assert not thread.is_alive(), "a client hangs"

    def _run(self) -> None:
        body = {"prompt": "hello", "max_tokens": 60, "ignore_eos": True, "stream": True}
        with httpx.Client(timeout=ENOUGH, trust_env=False) as client:
            while not self._over.is_set():
                with client.stream("POST", f"{self._url}/v1/completions", json=body) as response:
                    lines = [line.removeprefix("data: ") for line in response.iter_lines() if line]
                    self.ends.append(_end_of(response.status_code, lines))
                if self.ends[-1] != "whole":
                    time.sleep(0.2)


def _end_of(status: int, lines: list[str]) -> str:
    if status != 200:
        return f"refused {status} {json.loads(''.join(lines))['error']['message']}"
    events = [json.loads(line) for line in lines if line != "[DONE]"]
    errors = [event["error"] for event in events if "error" in event]
    if errors:
        return f"error {errors[0]['message']}"
    tokens = [choice for event in events for choice in event["choices"]]
    return "whole" if lines[-1] == "[DONE]" and tokens[-1]["finish_reason"] == "length" else f"lost {lines[-2:]}"


def test_the_same_tokens_and_logprobs_as_one_process(ranks: Served, tmp_path: Path) -> None:
    with tiny_server(tmp_path, *ONE) as single:
        expected = answers(single)
    for found, wanted in zip(answers(ranks), expected, strict=True):
        assert found["text"] == wanted["text"]
        ours, theirs = found["logprobs"]["token_logprobs"], wanted["logprobs"]["token_logprobs"]
        assert ours[1:] == pytest.approx(theirs[1:], abs=1e-4)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_any_rank_dies_or_hangs_under_load(how: signal.Signals, tmp_path: Path) -> None:
    with tiny_server(tmp_path, *FOUR) as served:
        for rank in (1, 2, 3):
            _lose(served, rank, how)


def _lose(served: Served, rank: int, how: signal.Signals) -> None:
    """Every open request ends, with an answer or an error that names the rank; the group starts again and nobody of the old one is left."""
    until_ready(served)
    before = workers(served)
    assert len(before) == 3
    clients = Clients(served)
    _until(lambda: len(clients.ends) >= CLIENTS)  # all have streamed
    before[rank].send_signal(how)
    _until(lambda: any(end != "whole" for end in clients.ends))
    until_ready(served)
    seen = len(clients.ends)
    _until(lambda: clients.ends[seen:].count("whole") >= CLIENTS)
    clients.stop()
    others = [end for end in clients.ends if end != "whole"]
    assert all(end.startswith(("error", "refused 503")) for end in others), others
    assert any(f"rank {rank} " in end for end in others), others
    assert not [process.pid for process in before.values() if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]


def test_a_rank_that_dies_while_nobody_asks(ranks: Served) -> None:
    until_ready(ranks)
    workers(ranks)[1].kill()
    _until(lambda: health(ranks).status_code != 200)
    until_ready(ranks)
    assert answers(ranks)


def test_ranks_end_with_a_server_that_is_killed(ranks: Served) -> None:
    until_ready(ranks)
    left = list(workers(ranks).values())
    assert len(left) == 3
    os.kill(ranks.process.pid, signal.SIGKILL)
    _until(lambda: not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in left))


def _until(condition: Any) -> None:
    end = time.monotonic() + ENOUGH
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)
