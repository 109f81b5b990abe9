"""A server that does with a request what it is told: answers, refuses, dies, or streams when somebody lets it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal

Manner = Literal["answer", "refuse", "die", "stream", "stream until closed"]
FIRST, LAST = b'data: {"text": "first"}\n\n', b"data: [DONE]\n\n"
REFUSAL = b'{"error": {"message": "full", "reason": "queue_full"}}'


class ScriptedEngine(ThreadingHTTPServer):
    """`seen`: method, path and X-Request-Id of each request. A stream's second half waits for `go_on`."""

    daemon_threads = True

    def __init__(self, manner: Manner):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.manner = manner
        self.seen: list[tuple[str, str, str]] = []
        self.go_on = threading.Event()

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    @property
    def count(self) -> int:
        return len(self.seen)


class _Handler(BaseHTTPRequestHandler):
    server: ScriptedEngine
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self._serve()

    def _serve(self) -> None:
        engine = self.server
        engine.seen.append((self.command, self.path, self.headers.get("X-Request-Id", "")))
        if engine.manner == "die":
            self.close_connection = True
        elif engine.manner == "refuse":
            self._send(503, REFUSAL)
        elif engine.manner == "answer":
            self._send(200, b'{"ok": true}')
        else:
            self._stream()

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Request-Id", "of the engine")
        self.end_headers()
        self.wfile.write(body)

    def _stream(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        in_chunks = self.server.manner == "stream"
        self.send_header("Transfer-Encoding", "chunked") if in_chunks else self.send_header("Connection", "close")
        self.end_headers()
        for frame in (FIRST, LAST):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(frame), frame) if in_chunks else frame)
            self.wfile.flush()
            if frame is FIRST:
                assert self.server.go_on.wait(60)
        if in_chunks:
            self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def scripted_engine(manner: Manner) -> Iterator[ScriptedEngine]:
    engine = ScriptedEngine(manner)
    thread = threading.Thread(target=engine.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield engine
    finally:
        engine.go_on.set()
        engine.shutdown()
        thread.join()
        engine.server_close()
