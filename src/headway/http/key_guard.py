"""KeyGuard: who has none of the keys is refused. Plain ASGI, no buffering."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Collection, Sequence

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from headway.errors import HeadwayError


class KeyChain:
    """Some keys, kept as digests and compared in constant time."""

    def __init__(self, keys: Sequence[str]):
        self._digests = [_digest(key.encode()) for key in keys]

    def opens(self, authorization: str) -> bool:
        """Whether the value of an `Authorization` header is `Bearer KEY` with one of the keys."""
        scheme, _, key = authorization.partition(" ")
        return self.has(key.strip()) and scheme.lower() == "bearer"

    def has(self, key: str) -> bool:
        """Whether it is one of the keys; `key` as it stands in a header."""
        given = _digest(key.encode("latin-1"))
        matches = [hmac.compare_digest(given, digest) for digest in self._digests]  # all of them: no early end
        return any(matches)


def key_needed() -> HeadwayError:
    return HeadwayError(
        "A valid API key is needed", reason="unauthorized", fix="Send it as header Authorization: Bearer KEY."
    )


class KeyGuard:
    """Every path outside `open_paths` needs one of `keys`, as a bearer token or, as Anthropic's clients send it, in `x-api-key`.

    `refuse` makes the answer to who has none, in the form that clients of the path read.
    """

    def __init__(
        self, app: ASGIApp, keys: Sequence[str], open_paths: Collection[str], refuse: Callable[[HeadwayError, str], Response]
    ):
        self._app = app
        self._keys = KeyChain(keys)
        self._open_paths = open_paths
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not self._may_pass(scope):
            await self._refuse(key_needed(), scope["path"])(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _may_pass(self, scope: Scope) -> bool:
        if scope["path"].removeprefix(scope.get("root_path", "")) in self._open_paths:
            return True
        headers = Headers(scope=scope)
        key = headers.get("x-api-key")
        return self._keys.opens(headers.get("authorization", "")) or (key is not None and self._keys.has(key))


def _digest(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()
