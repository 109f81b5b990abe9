"""A client that leaves ends its request at once, on a real socket."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from tests.server.api import CHAT, COMPLETIONS, USER
from tests.server.live import Live, live
from tests.server.scripted_engine import ScriptedEngine


@pytest.fixture
def server() -> Iterator[Live]:
    with live(ScriptedEngine(b"x" * 50)) as running:
        yield running


def is_idle(server: Live) -> bool:
    return not server.engine.active and server.state.load == 0


@pytest.mark.parametrize("path", [COMPLETIONS, CHAT])
@pytest.mark.parametrize("extra", [{}, {"n": 3}])
def test_leaving_a_stream(server: Live, path: str, extra: dict[str, Any]) -> None:
    server.hold(after=3)
    with httpx.Client(base_url=server.url, trust_env=False) as client:
        body = {"prompt": "x", "messages": USER, "stream": True, **extra}
        with client.stream("POST", path, json=body) as response:
            frames = response.iter_raw()  # kept: the connection closes with it
            next(frames)
            assert len(server.engine.active) == 1
    server.until(lambda: is_idle(server))
    assert len(server.engine.aborted) == 1


@pytest.mark.parametrize("path", [COMPLETIONS, CHAT])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("extra", [{}, {"n": 3}])
def test_leaving_before_anything_came(server: Live, path: str, stream: bool, extra: dict[str, Any]) -> None:
    server.hold(after=0)
    with httpx.Client(base_url=server.url, trust_env=False, timeout=0.3) as client, pytest.raises(httpx.ReadTimeout):
        client.post(path, json={"prompt": "x", "messages": USER, "stream": stream, **extra})
    server.until(lambda: is_idle(server))
    assert len(server.engine.aborted) == 1


@pytest.mark.parametrize("stream", [False, True])
def test_leaving_a_request_of_several_prompts_ends_all(server: Live, stream: bool) -> None:
    server.hold(after=0)
    with httpx.Client(base_url=server.url, trust_env=False, timeout=0.3) as client, pytest.raises(httpx.ReadTimeout):
        client.post(COMPLETIONS, json={"prompt": ["a", "b", "c"], "stream": stream})
    server.until(lambda: is_idle(server))
    assert len(server.engine.aborted) == 3


def test_leaving_while_the_body_is_sent(server: Live, caplog: pytest.LogCaptureFixture) -> None:
    place = urlsplit(server.url)
    head = b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n"
    with socket.create_connection((place.hostname, place.port)) as sock:
        sock.sendall(head + b'{"prompt"')
        server.until(lambda: server.state.load == 1)
    server.until(lambda: is_idle(server))
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
    assert server.engine.seen == []


def test_others_go_on(server: Live) -> None:
    server.hold(after=3)
    url = server.url + COMPLETIONS
    with httpx.stream("POST", url, json={"prompt": "stays", "stream": True}, trust_env=False) as response:
        lines = response.iter_lines()
        next(lines)
        with httpx.stream("POST", url, json={"prompt": "leaves", "stream": True}, trust_env=False) as other:
            next(other.iter_raw())
        server.until(lambda: len(server.engine.active) == 1)
        server.release()
        assert [line for line in lines if line][-1] == "data: [DONE]"
    server.until(lambda: is_idle(server))


def test_a_request_that_ends_is_not_aborted(server: Live) -> None:
    with httpx.Client(base_url=server.url, trust_env=False) as client:
        for stream in (False, True):
            assert client.post(COMPLETIONS, json={"prompt": "x", "stream": stream}).status_code == 200
        assert client.get("/load").json() == {"server_load": 0}
    assert server.engine.aborted == []


def test_load_counts_requests_in_flight(server: Live) -> None:
    server.hold(after=3)
    with httpx.stream("POST", server.url + COMPLETIONS, json={"prompt": "x", "stream": True}, trust_env=False) as response:
        frames = response.iter_raw()
        next(frames)
        assert httpx.get(server.url + "/load", trust_env=False).json() == {"server_load": 1}
    server.until(lambda: is_idle(server))
