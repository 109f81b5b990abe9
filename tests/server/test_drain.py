"""SIGTERM while streams run: they may end within the bound, then they are cut, and nobody new is let in."""

from __future__ import annotations

import contextlib
import json
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from headway.cli.server_client import ServerClient
from headway.cli.wait import wait_until_ready
from tests.server.api import COMPLETIONS, error
from tests.server.process import ServerProcess, server_process

SLOW = {"prompt": "slow", "max_tokens": 40, "temperature": 0}


class Streaming(threading.Thread):
    """Reads a stream of 40 tokens, 50 ms each; `begun` after the second."""

    def __init__(self, url: str):
        super().__init__(daemon=True)
        self._url = url
        self.begun = threading.Event()
        self.events: list[str] = []
        self.start()

    def run(self) -> None:
        with contextlib.suppress(httpx.RemoteProtocolError):  # a process that ends at once says no more
            self._read()

    def _read(self) -> None:
        with httpx.stream("POST", self._url + COMPLETIONS, json={**SLOW, "stream": True}, trust_env=False, timeout=60) as response:
            for line in response.iter_lines():
                if line:
                    self.events.append(line.removeprefix("data: "))
                if len(self.events) == 2:
                    self.begun.set()

    def finished(self) -> list[str]:
        self.join(30)
        assert not self.is_alive()
        return self.events


@contextmanager
def draining(folder: Path, seconds: str) -> Iterator[tuple[ServerProcess, Streaming]]:
    """A server that got SIGTERM in the middle of a stream."""
    with server_process(folder, "core", "--shutdown-timeout", seconds) as server:
        server.read_note()
        assert wait_until_ready(ServerClient(server.url), 30, lambda state: None).state == "ok"
        stream = Streaming(server.url)
        assert stream.begun.wait(20)
        server.process.send_signal(signal.SIGTERM)
        server.until_logged("received SIGTERM")
        yield server, stream


def test_streams_end_within_the_bound_and_new_requests_are_refused(tmp_path: Path) -> None:
    with draining(tmp_path, "30") as (server, stream):
        refused = httpx.post(server.url + COMPLETIONS, json={"prompt": "x"}, trust_env=False, timeout=10)
        error(refused, 503, "shutting_down")
        assert int(refused.headers["retry-after"]) > 0
        health = httpx.get(server.url + "/health", trust_env=False)
        assert (health.status_code, health.json()) == (503, {"status": "stopping"})
        events = stream.finished()
        assert events[-1] == "[DONE]"
        assert "".join(json.loads(e)["choices"][0]["text"] for e in events[:-1]) == "x" * 40
        assert server.ended() == 0
        assert "waiting up to 30 s for 1 request(s)" in server.log
        assert "Traceback" not in server.log
        with pytest.raises(httpx.ConnectError):
            httpx.get(server.url + "/health", trust_env=False)


def test_streams_are_cut_with_an_error_after_the_bound(tmp_path: Path) -> None:
    with draining(tmp_path, "0.2") as (server, stream):
        events = stream.finished()
        assert events[-1] == "[DONE]"
        last = json.loads(events[-2])["error"]
        assert (last["reason"], last["code"]) == ("shutting_down", 503)
        assert 2 <= len(events) < 40
        assert server.ended() == 0
        assert "ending 1 request(s)" in server.log


def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    with draining(tmp_path, "600") as (server, _):
        time.sleep(1.1)  # a signal that follows sooner is taken for the same one
        server.process.send_signal(signal.SIGTERM)
        assert server.ended() == 128 + signal.SIGTERM
        assert "received SIGTERM again: ending at once" in server.log
        assert not server.note_file.exists()
