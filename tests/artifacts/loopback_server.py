"""A small HTTP server on loopback for tests: a function from request to answer, and a record of what was asked."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True)
class Request:
    method: str
    path: str  # with the query
    headers: dict[str, str]  # names in lower case


@dataclass
class Answer:
    """`cut` closes the connection after that many bytes of the body."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    cut: int | None = None
    gate: threading.Event | None = None  # the second half of the body waits for it
    trickle: float = 0.0  # seconds between eighths of the body


@dataclass
class Loopback:
    url: str
    requests: list[Request]


@contextmanager
def loopback(answer: Callable[[Request], Answer]) -> Iterator[Loopback]:
    requests: list[Request] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            request = Request(self.command, self.path, {name.lower(): value for name, value in self.headers.items()})
            requests.append(request)
            reply = answer(request)
            self.send_response(reply.status)
            headers = {"Content-Length": str(len(reply.body)), **reply.headers}
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "HEAD":
                return
            if reply.trickle:
                step = len(reply.body) // 8 + 1
                for start in range(0, len(reply.body), step):
                    self.wfile.write(reply.body[start : start + step])
                    self.wfile.flush()
                    time.sleep(reply.trickle)
                return
            body = reply.body if reply.cut is None else reply.body[: reply.cut]
            half = len(body) // 2 if reply.gate is not None else len(body)
            self.wfile.write(body[:half])
            self.wfile.flush()
            if reply.gate is not None:
                reply.gate.wait(30)
                self.wfile.write(body[half:])
            if reply.cut is not None:
                self.close_connection = True

        do_HEAD = do_GET

        def log_message(self, format: str, *args: object) -> None:
            pass

        def handle(self) -> None:
            try:
                super().handle()
            except ConnectionError:  # the client was killed on purpose
                self.close_connection = True

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield Loopback(f"http://127.0.0.1:{server.server_address[1]}", requests)
    finally:
        server.shutdown()
        server.server_close()


def ranged(request: Request, content: bytes) -> Answer:
    """Answer as a file server that knows ranges."""
    wanted = request.headers.get("range", "")
    if not wanted.startswith("bytes="):
        return Answer(body=content, headers={"Accept-Ranges": "bytes"})
    first, _, last = wanted[6:].partition("-")
    start, end = int(first), int(last) + 1 if last else len(content)
    if start >= len(content):
        return Answer(416, headers={"Content-Range": f"bytes */{len(content)}"})
    return Answer(206, content[start:end], {"Content-Range": f"bytes {start}-{end - 1}/{len(content)}"})
