"""The HTTP server below the application: uvicorn, set up for one listening socket."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Callable, Iterator

import uvicorn
from starlette.types import ASGIApp

from headway.errors import HeadwayError
from headway.http.access_log import WithoutPaths
from headway.http.open_files import connection_limit
from headway.http.protocol import HeadLimits, Rendered, bounded_protocol
from headway.http.settings import HttpSettings
from headway.http.tls import refresh
from headway.wire.errors import rendered


class HttpServer(uvicorn.Server):
    """uvicorn without its signal handlers: `shutdown` decides what a signal means. `tls` makes it HTTPS.

    `render` writes what is refused before the application sees it.
    """

    def __init__(
        self,
        app: ASGIApp,
        settings: HttpSettings,
        tls: ssl.SSLContext | None = None,
        render: Callable[[HeadwayError], Rendered] = rendered,
    ):
        super().__init__(_config(app, settings, render))
        self._settings = settings
        self.config.load()
        self.config.ssl = tls

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        renewal = None
        if self.config.ssl is not None and self._settings.enable_ssl_refresh:
            renewal = asyncio.create_task(refresh(self.config.ssl, self._settings))
        try:
            await super().serve(sockets)
        finally:
            if renewal is not None:
                renewal.cancel()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def stop_accepting(self) -> None:
        for listening in getattr(self, "servers", []):
            listening.close()


def _config(app: ASGIApp, settings: HttpSettings, render: Callable[[HeadwayError], Rendered]) -> uvicorn.Config:
    if settings.disable_access_log_for_endpoints:
        logging.getLogger("uvicorn.access").addFilter(WithoutPaths(settings.disable_access_log_for_endpoints))
    return uvicorn.Config(
        app,
        http=bounded_protocol(
            HeadLimits(
                settings.h11_max_incomplete_event_size,
                settings.h11_max_header_count,
                settings.request_head_timeout,
                connection_limit(settings.max_connections),
            ),
            render,
        ),
        ws="none",
        lifespan="off",
        log_config=None,
        log_level=settings.uvicorn_log_level,
        access_log=not settings.disable_uvicorn_access_log,
        server_header=False,
        timeout_keep_alive=int(settings.timeout_keep_alive),
        timeout_graceful_shutdown=1,
        proxy_headers=False,
    )
