"""The HTTP/1.1 protocol of uvicorn with bounds on what a client may send before its request is understood."""

from __future__ import annotations

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class HeadTooLarge(Exception):
    """Request line and headers are over the bounds; the parser turns it into a 400 and the connection is closed."""


def bounded_protocol(max_bytes: int, max_headers: int) -> type[HttpToolsProtocol]:
    """A protocol class for uvicorn's `http` setting."""

    class BoundedProtocol(HttpToolsProtocol):
        _head = 0

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self._head = 0

        def on_url(self, url: bytes) -> None:
            self._count(len(url))
            super().on_url(url)

        def on_header(self, name: bytes, value: bytes) -> None:
            self._count(len(name) + len(value))
            if len(self.headers) >= max_headers:
                raise HeadTooLarge
            super().on_header(name, value)

        def _count(self, size: int) -> None:
            self._head += size
            if self._head > max_bytes:
                raise HeadTooLarge

    return BoundedProtocol
