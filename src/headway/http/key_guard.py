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
        given = _digest(key.strip().encode("latin-1"))
        matches = [hmac.compare_digest(given, digest) for digest in self._digests]  # all of them: no early end
        return scheme.lower() == "bearer" and any(matches)


def key_needed() -> HeadwayError:
    return HeadwayError(
        "A valid API key is needed", reason="unauthorized", fix="Send it as header Authorization: Bearer KEY."
    )


class KeyGuard:
    """Every path outside `open_paths` needs one of `keys`; `refuse` makes the answer to who has none."""

    def __init__(
        self, app: ASGIApp, keys: Sequence[str], open_paths: Collection[str], refuse: Callable[[HeadwayError], Response]
    ):
        self._app = app
        self._keys = KeyChain(keys)
        self._open_paths = open_paths
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not self._may_pass(scope):
            await self._refuse(key_needed())(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _may_pass(self, scope: Scope) -> bool:
        if scope["path"].removeprefix(scope.get("root_path", "")) in self._open_paths:
            return True
        return self._keys.opens(Headers(scope=scope).get("authorization", ""))


def _digest(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()
