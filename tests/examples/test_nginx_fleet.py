"""nginx before two real engines under load: one is killed, comes back, and ends in order."""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from tests.e2e.served_model import Served
from tests.e2e.tiny_server import free_port, tiny_server
from tests.examples.nginx_before import nginx_before

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
CLIENTS = 6
FLAGS = ("--shutdown-timeout", "60", "--enable-request-id-headers", "--max-num-seqs", "16")


class Load:
    """Clients that ask until `stop`, every second one for a stream. `seen` counts outcomes: a status, cut, or an error's name."""

    def __init__(self, url: str):
        self.seen: Counter[str] = Counter()
        self._turns = [0] * CLIENTS
        self._url, self._over = url, threading.Event()
        self._threads = [threading.Thread(target=self._client, args=(number,)) for number in range(CLIENTS)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(60)

    def more(self, answers: int) -> None:
        """Until that many more requests succeeded."""
        until(lambda goal=self.seen["200"] + answers: self.seen["200"] >= goal)  # type: ignore[misc]

    def all_again(self) -> None:
        """Until every client has ended what it was at, and one more request."""
        goals = [turns + 2 for turns in self._turns]
        until(lambda: all(turns >= goal for turns, goal in zip(self._turns, goals, strict=True)))

    def failures(self) -> dict[str, int]:
        return {outcome: count for outcome, count in self.seen.items() if outcome != "200"}

    def _client(self, number: int) -> None:
        with httpx.Client(base_url=self._url, trust_env=False, timeout=120) as client:
            while not self._over.is_set():
                self.seen[self._ask(client, stream=number % 2 == 0)] += 1
                self._turns[number] += 1

    def _ask(self, client: httpx.Client, stream: bool) -> str:
        body = {"prompt": "some text", "max_tokens": 24, "ignore_eos": True, "stream": stream}
        try:
            with client.stream("POST", "/v1/completions", json=body) as answer:
                text = answer.read()
        except httpx.TransportError as error:
            return type(error).__name__
        return "cut" if answer.status_code == 200 and stream and b"data: [DONE]" not in text else str(answer.status_code)


def until(condition: Callable[[], bool], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def answered(engine: Served) -> float:
    return engine.metric("vllm:request_success_total")


def test_an_engine_is_killed_comes_back_and_is_exchanged_under_load(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("one", "two", "nginx")]
    for folder in folders[:2]:
        folder.mkdir()
    with ExitStack() as stack:
        ports = [free_port(), free_port()]
        one, two = (stack.enter_context(tiny_server(folder, *FLAGS, port=port)) for folder, port in zip(folders[:2], ports, strict=True))
        url = stack.enter_context(nginx_before(folders[2], *ports))
        load = Load(url)
        stack.callback(load.stop)
        until(lambda: min(answered(one), answered(two)) >= 10)  # both have their share
        assert load.failures() == {}

        one.process.kill()
        one.process.wait(20)
        load.all_again()
        # Only what was running there is lost: at most one request of each client.
        lost = load.failures()
        assert sum(lost.values()) <= CLIENTS, lost
        assert lost.keys() <= {"502", "cut", "RemoteProtocolError", "ReadError"}, lost
        assert httpx.get(url + "/health", trust_env=False).status_code == 200

        back = stack.enter_context(tiny_server(folders[0], *FLAGS, port=ports[0]))  # refuses while it loads
        until(lambda: answered(back) >= 10)
        # In order: what runs is answered, what comes goes to the other one.
        body = {"prompt": "some text", "max_tokens": 230, "ignore_eos": True, "stream": True}
        with httpx.stream("POST", back.url + "/v1/completions", json=body, trust_env=False, timeout=120) as running:
            lines = running.iter_lines()
            next(lines)
            back.process.send_signal(signal.SIGTERM)
            assert "data: [DONE]" in list(lines)
        assert back.process.wait(120) == 0
        load.more(40)
        assert load.failures() == lost
        load.stop()
        assert load.failures() == lost
