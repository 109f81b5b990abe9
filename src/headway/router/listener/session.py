"""Which conversation a request belongs to, as far as the request shows it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from headway.router.request.view import RequestView

_READ_CHARACTERS = 4096
_ANTHROPIC_PREFIX = "ant-md-"


def names_session(headers: Mapping[str, str]) -> bool:
    """Whether the client itself says which session this is."""
    return bool(headers.get("x-session-id") or headers.get("x-claude-code-session-id"))


def session_of(headers: Mapping[str, str], protocol: str, body: Mapping[str, Any], view: RequestView, request_id: str) -> str:
    """The first that there is: `x-session-id`; for Messages `x-claude-code-session-id` and `metadata.user_id`; a fingerprint of the user and the
    first turn, which stays the same while a conversation grows; one of its structure; one of the request. `body` is what the client sent."""
    named = headers.get("x-session-id") or (headers.get("x-claude-code-session-id") if protocol == "anthropic" else None)
    if named:
        return named
    metadata = body.get("metadata") if protocol == "anthropic" else None
    if isinstance(metadata, Mapping) and isinstance(metadata.get("user_id"), str) and metadata["user_id"]:
        return _ANTHROPIC_PREFIX + str(metadata["user_id"])[:256]
    first = next(filter(None, view.user_texts), "")
    if first:
        return _fingerprint("turn", str(view.identity.user or view.identity.key or body.get("user") or ""), first[:_READ_CHARACTERS])
    if view.messages:
        return _fingerprint("structure", *(str(message.get("role")) for message in view.messages[:64]))
    return _fingerprint("request", request_id)


def _fingerprint(*parts: str) -> str:
    digest = hashlib.blake2b(digest_size=12)
    for part in parts:
        digest.update(part.encode("utf-8", "surrogatepass") + b"\0")
    return digest.hexdigest()
