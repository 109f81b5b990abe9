"""What uvicorn's protocol accepts before a request is understood, and how a server behaves at its end."""

from __future__ import annotations

import gzip
import json
import resource
import socket
import threading
import time
from urllib.parse import urlsplit

import httpx
import pytest

from headway.http.open_files import connection_limit
from headway.http.shutdown import drain
from tests.server.api import COMPLETIONS, error, frames
from tests.server.live import Live, live
from tests.server.scripted_engine import ScriptedEngine


def raw(server: Live, data: bytes) -> bytes:
    """Send bytes, read until the server closes or answers."""
    place = urlsplit(server.url)
    with socket.create_connection((place.hostname, place.port), timeout=5) as sock:
        sock.sendall(data)
        return sock.recv(65536)


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n", b"200"),
        (b"GET /health HTTP/1.1\r\nHost: x\r\nA: " + b"y" * 3000 + b"\r\n\r\n", b"400"),
        (b"GET /" + b"y" * 3000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", b"400"),
        (b"GET /health HTTP/1.1\r\n" + b"A: y\r\n" * 21 + b"\r\n", b"400"),
        (b"GET /health HTTP/1.1\r\n" + b"A: y\r\n" * 20 + b"\r\n", b"200"),
        (b"nonsense\r\n\r\n", b"400"),
    ],
)
def test_heads_are_bounded(head: bytes, status: bytes) -> None:
    with live(h11_max_incomplete_event_size=2000, h11_max_header_count=20) as server:
        answer = raw(server, head)
        assert answer.startswith(b"HTTP/1.1 " + status)
        if status == b"400":
            reason = "body_invalid" if head.startswith(b"nonsense") else "head_too_large"
            assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["reason"] == reason


def read_all(sock: socket.socket) -> bytes:
    sock.settimeout(10)
    parts = []
    while part := sock.recv(65536):
        parts.append(part)
    return b"".join(parts)


def connected(server: Live) -> socket.socket:
    place = urlsplit(server.url)
    return socket.create_connection((place.hostname, place.port), timeout=10)


def refusal(answer: bytes) -> tuple[int, str]:
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"connection: close" in head.lower()
    found = json.loads(body)["error"]
    assert int(head.split(b" ")[1]) == found["code"]
    return found["code"], found["reason"]


@pytest.mark.parametrize("begun", [b"", b"GET /hea", b"GET /health HTTP/1.1\r\nHost: x\r\nA: "])
def test_a_head_that_does_not_come_is_408(begun: bytes) -> None:
    with live(request_head_timeout=0.1) as server, connected(server) as sock:
        sock.sendall(begun)
        assert refusal(read_all(sock)) == (408, "request_timeout")


@pytest.mark.parametrize("framing", [b"transfer-encoding: chunked\r\n\r\nzz\r\n", b"transfer-encoding: xchunked\r\n\r\nx"])
def test_a_body_whose_framing_is_broken_is_400(framing: bytes) -> None:
    with live(ScriptedEngine()) as server:
        answer = raw(server, b"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n" + framing)
        assert answer.startswith(b"HTTP/1.1 400 ")


def test_the_head_of_a_second_request_has_its_own_time() -> None:
    whole = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
    with live(request_head_timeout=0.1) as server, connected(server) as sock:
        sock.sendall(whole)
        assert sock.recv(65536).startswith(b"HTTP/1.1 200")
        sock.sendall(whole[:10])
        assert refusal(read_all(sock)) == (408, "request_timeout")


def test_an_answer_that_takes_long_is_not_cut_by_the_time_for_heads() -> None:
    with live(ScriptedEngine(b"ab"), request_head_timeout=0.05) as server:
        server.hold(after=1)
        with httpx.stream("POST", server.url + COMPLETIONS, json={"prompt": "x", "stream": True}, trust_env=False) as response:
            lines = response.iter_lines()
            next(lines)
            time.sleep(0.15)
            server.release()
            assert [line for line in lines if line][-1] == "data: [DONE]"


def test_a_body_that_does_not_come_is_408_and_leaves_nothing() -> None:
    head = b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n"
    with live(request_body_timeout=0.1) as server, connected(server) as sock:
        sock.sendall(head + b'{"prompt"')
        assert refusal(read_all(sock)) == (408, "request_timeout")
        server.until(lambda: server.state.load == 0)
        assert server.engine.seen == []


def test_connections_beyond_the_limit_are_told_so() -> None:
    with live(max_connections=3) as server:
        open_ones = [connected(server) for _ in range(3)]
        for sock in open_ones:  # each is known to the server
            sock.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
            assert sock.recv(65536).startswith(b"HTTP/1.1 200")
        with connected(server) as extra:
            assert refusal(read_all(extra)) == (503, "too_many_connections")
        open_ones.pop().close()
        deadline = time.monotonic() + 10
        while True:  # there is room again
            with connected(server) as extra:
                extra.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
                if extra.recv(65536).startswith(b"HTTP/1.1 200"):
                    break
            assert time.monotonic() < deadline
        for sock in open_ones:
            sock.close()


def test_the_limit_follows_the_files_that_may_be_open() -> None:
    most = connection_limit(0)
    assert connection_limit(10) == 10
    assert 1 <= most <= resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    assert connection_limit(10**9) == most


@pytest.mark.parametrize("coding", ["gzip", "br", "deflate", "GZIP, identity", "x" * 500])
def test_encoded_bodies_are_refused(coding: str) -> None:
    with live() as server:
        headers = {"content-encoding": coding, "content-type": "application/json"}
        body = gzip.compress(b'{"prompt": "x"}')
        found = httpx.post(server.url + COMPLETIONS, content=body, headers=headers, trust_env=False)
        error(found, 400, "media_type_unsupported", "content-encoding")
        fine = httpx.post(server.url + COMPLETIONS, json={"prompt": "x"}, headers={"content-encoding": "identity"}, trust_env=False)
        assert fine.status_code == 200


def test_the_next_request_of_a_connection_has_a_head_of_its_own() -> None:
    with live(h11_max_incomplete_event_size=2000) as server, httpx.Client(base_url=server.url, trust_env=False) as client:
        for _ in range(3):
            assert client.get("/health", headers={"A": "y" * 1500}).status_code == 200
        assert client.get("/health", headers={"A": "y" * 2500}).status_code == 400


def test_silence_in_a_stream_is_filled_with_comments() -> None:
    with live(ScriptedEngine(b"ab"), sse_keep_alive_interval=0.02) as server:
        for after in (0, 1):  # before the first token, and between tokens
            server.hold(after)
            with httpx.stream("POST", server.url + COMPLETIONS, json={"prompt": "x", "stream": True}, trust_env=False) as response:
                text = ""
                for piece in response.iter_text():
                    text += piece
                    if text.count(": keep-alive\n\n") >= 2:
                        server.release()
            assert "".join(c["choices"][0]["text"] for c in frames(text)) == "ab"


def test_an_error_after_the_first_comment_is_a_frame() -> None:
    engine = ScriptedEngine(b"ab", max_model_len=50)
    with live(engine, sse_keep_alive_interval=0.02) as server:
        response = httpx.post(server.url + COMPLETIONS, json={"prompt": "x" * 60, "stream": True}, trust_env=False)
        error(response, 400, "context_length_exceeded")  # in time for a status of its own


def test_requests_in_flight_may_end_when_the_server_stops() -> None:
    with live(ScriptedEngine(b"abc")) as server:
        server.hold(after=1)
        answers: list[httpx.Response] = []
        client = threading.Thread(
            target=lambda: answers.append(httpx.post(server.url + COMPLETIONS, json={"prompt": "x", "stream": True}, trust_env=False))
        )
        client.start()
        server.until(lambda: server.state.load == 1)
        server.on_loop(lambda: server.loop.create_task(drain(server.state, 10)))
        server.until(lambda: server.state.is_closing)
        error(httpx.post(server.url + COMPLETIONS, json={"prompt": "late"}, trust_env=False), 503, "shutting_down")
        assert httpx.get(server.url + "/health", trust_env=False).json() == {"status": "stopping"}
        server.release()
        client.join(10)
        assert "".join(c["choices"][0]["text"] for c in frames(answers[0].text)) == "abc"


@pytest.mark.parametrize("stream", [False, True])
def test_what_still_runs_when_the_time_is_over_ends_with_an_error(stream: bool) -> None:
    with live(ScriptedEngine(b"abc")) as server:
        server.hold(after=1)
        answers: list[httpx.Response] = []
        client = threading.Thread(
            target=lambda: answers.append(httpx.post(server.url + COMPLETIONS, json={"prompt": "x", "stream": stream}, trust_env=False))
        )
        client.start()
        server.until(lambda: server.state.load == 1 and bool(server.engine.active))
        time.sleep(0.05 if stream else 0)  # the first frame is on its way
        server.on_loop(lambda: server.loop.create_task(drain(server.state, 0)))
        client.join(10)
        server.until(lambda: not server.engine.active)
        if stream and answers[0].status_code == 200:
            assert frames(answers[0].text)[-1]["error"]["reason"] == "shutting_down"
        else:
            error(answers[0], 503, "shutting_down")
