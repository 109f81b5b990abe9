"""RuntimeClient: HTTP to one model runtime."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import aiohttp

from headway.errors import HeadwayError
from headway.router.deployments.address import Address

MAX_ANSWER_BYTES = 64 * 1024 * 1024
_JSON = {"content-type": "application/json"}
PHASES = ("parse", "tokenize", "queue", "forward", "post", "serialize")


class RuntimeUnreachableError(HeadwayError):
    """No whole answer came over the connection."""

    reason = "runtime_unreachable"


class AnswerTooLargeError(RuntimeUnreachableError):
    """The runtime said more than was allowed; nobody reads on."""

    reason = "runtime_answer_too_large"


@dataclass(frozen=True, slots=True)
class Exchange:
    """`seconds` from the first byte sent to the last one read. `server` is what the runtime says of its time, in seconds: phases and `total`."""

    status: int
    body: bytes
    seconds: float
    server: Mapping[str, float] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


class RuntimeClient:
    """For one event loop. Connections are kept alive; none goes through a proxy, redirects are not followed."""

    def __init__(self, address: Address, key: str | None = None, connections: int = 64) -> None:
        self.address = address
        self._headers = {**_JSON, **({"authorization": f"Bearer {key}"} if key else {})}
        self._connections = connections
        self._session: aiohttp.ClientSession | None = None

    async def get(self, path: str, timeout: float) -> Exchange:
        return await self._exchange("GET", path, None, timeout, MAX_ANSWER_BYTES)

    async def post(self, path: str, body: bytes, timeout: float, most: int = MAX_ANSWER_BYTES) -> Exchange:
        """`most` bytes of answer are read. Raises TimeoutError, RuntimeUnreachableError."""
        return await self._exchange("POST", path, body, timeout, most)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _exchange(self, method: str, path: str, body: bytes | None, timeout: float, most: int) -> Exchange:
        session = self._opened()
        began = time.perf_counter()
        try:
            bound = aiohttp.ClientTimeout(total=max(timeout, 0.001))
            async with session.request(method, self.address.origin + path, data=body, timeout=bound, allow_redirects=False) as response:
                content = await _read(response, most)
                seconds = time.perf_counter() - began
                return Exchange(response.status, content, seconds, server_timing(response.headers.get("server-timing", "")), response.headers)
        except TimeoutError:
            raise
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise RuntimeUnreachableError(f"the model runtime at {self.address} cannot be reached: {_cause(error)}") from error

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            limit = self._connections
            connector: aiohttp.BaseConnector
            if self.address.socket is not None:
                connector = aiohttp.UnixConnector(path=self.address.socket, limit=limit)
            else:
                connector = aiohttp.TCPConnector(limit=limit)
            self._session = aiohttp.ClientSession(
                connector=connector, headers=self._headers, trust_env=False, auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar()
            )
        return self._session


async def _read(response: aiohttp.ClientResponse, most: int) -> bytes:
    if (response.content_length or 0) > most:
        response.close()
        raise AnswerTooLargeError(f"the model runtime's answer has more than {most} bytes")
    parts, size = [], 0
    async for part in response.content.iter_any():
        size += len(part)
        if size > most:
            response.close()
            raise AnswerTooLargeError(f"the model runtime's answer has more than {most} bytes")
        parts.append(part)
    return b"".join(parts)


def server_timing(text: str) -> dict[str, float]:
    """`parse;dur=0.1, total;dur=2` (milliseconds) -> seconds by name; entries that are no such numbers are left out."""
    found: dict[str, float] = {}
    for entry in text[:2000].split(","):
        name, _, rest = entry.strip().partition(";")
        if name not in (*PHASES, "total") or not rest.strip().startswith("dur="):
            continue
        try:
            seconds = float(rest.strip().removeprefix("dur=")) / 1000
        except ValueError:
            continue
        if 0 <= seconds < 1e6:
            found[name] = seconds
    return found


def _cause(error: Exception) -> str:
    """In words, without what was sent."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return type(error).__name__
