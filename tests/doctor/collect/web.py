"""A server over HTTP with answers that a test gives."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = tuple[int, str] | Callable[["Handler"], None]
"""Status and body, or a function that writes both itself."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    answers: Mapping[str, Answer]

    def log_message(self, *words: object) -> None:
        pass

    def _answer(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        self.rfile.read(length)
        found = self.answers.get(self.path.partition("?")[0], (404, '{"detail": "Not Found"}'))
        if callable(found):
            with suppress(BrokenPipeError, ConnectionResetError):
                found(self)
        else:
            self.say(*found)

    do_GET = do_POST = _answer

    def say(self, status: int, body: str) -> None:
        text = body.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def pieces(self, *texts: str, pause: Callable[[], None] = lambda: None) -> None:
        """A stream of events, one chunk each."""
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for text in texts:
            data = text.encode()
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            self.wfile.flush()
            pause()
        self.wfile.write(b"0\r\n\r\n")


@contextmanager
def answering(answers: Mapping[str, Answer]) -> Iterator[str]:
    """The URL of a server with these answers by path; 404 for the rest."""
    own = type("Own", (Handler,), {"answers": answers})
    server = ThreadingHTTPServer(("127.0.0.1", 0), own)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
