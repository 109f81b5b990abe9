"""Connections to backends, kept open and shared by every generation: one aiohttp session for TCP, one for each Unix socket."""

from __future__ import annotations

import aiohttp

_KEPT_SECONDS = 60.0
_DNS_SECONDS = 30
_READ_BUFFER = 256 * 1024  # a slow client stops the reading of its backend at twice this


class Connections:
    """Made in the event loop on first use. There is no limit of connections here: the places of each backend bound them."""

    def __init__(self) -> None:
        self._sessions: dict[str | None, aiohttp.ClientSession] = {}

    def session(self, socket: str | None = None) -> aiohttp.ClientSession:
        found = self._sessions.get(socket)
        if found is None or found.closed:
            found = self._sessions[socket] = _session(socket)
        return found

    async def close(self) -> None:
        sessions, self._sessions = list(self._sessions.values()), {}
        for session in sessions:
            await session.close()


def _session(socket: str | None) -> aiohttp.ClientSession:
    connector: aiohttp.BaseConnector
    if socket is None:
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEPT_SECONDS, ttl_dns_cache=_DNS_SECONDS)
    else:
        connector = aiohttp.UnixConnector(socket, limit=0, keepalive_timeout=_KEPT_SECONDS)
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),  # backends are shared by all callers
        timeout=aiohttp.ClientTimeout(total=None),
        auto_decompress=True,
        trust_env=False,
        skip_auto_headers=("User-Agent", "Accept"),
        read_bufsize=_READ_BUFFER,
    )
