"""The head of a request: who sends it, and which of its headers anything behind may see."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from headway.errors import HeadwayError, RequestError
from headway.router.listener.front import Front, ListenerRules
from headway.router.listener.key_ring import Key
from headway.router.request.deadline import Deadline
from headway.router.request.identity import Identity

HEADER_BYTES = 1024  # the longest value of a header that the router reads
KEY_BYTES = 8192
_TEAM, _TENANT = "x-authz-team-id", "x-authz-tenant-id"
_SECRETS = ("authorization", "api-key", "x-api-key")
_DEBUG, _SKIP, _REQUEST_ID, _TIMEOUT = "x-vsr-debug", "x-vsr-skip-processing", "x-request-id", "x-request-timeout-ms"
READ_FREELY = frozenset({
    "x-session-id", "x-conversation-id", "x-claude-code-session-id", "x-disable-router-memory", "x-vsr-cache-control",
    "x-vsr-compression-control", _REQUEST_ID, _TIMEOUT, "content-encoding", "content-length", "content-type", "traceparent", "tracestate",
})  # fmt: skip
"""What anybody may say. Everything else that a client sends is dropped here."""
_REQUEST_ID_FORM = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
LEAST_TIMEOUT_MS, MOST_TIMEOUT_MS = 1, 24 * 3600 * 1000


@dataclass(frozen=True, slots=True)
class Caller:
    """What is believed about the sender of one request. `key` is None where the listener asks for none. `skip_refused`: it asked to skip processing,
    and may not."""

    identity: Identity
    key: Key | None
    headers: Mapping[str, str]
    request_id: str
    deadline_ms: int | None
    debug: bool = False
    skip: bool = False
    skip_refused: bool = False


def caller_of(raw: Iterable[tuple[bytes, bytes]], peer: str, front: Front, rules: ListenerRules) -> Caller:
    """`raw` are the headers as ASGI has them, names in lower case.

    Raises HeadwayError `unauthorized`, RequestError for a header that is read and is too long, doubled, or holds control characters.
    """
    trusted = rules.trusted.hold(peer)
    identity_names = (*front.identity_headers, _TEAM, _TENANT)
    headers: dict[str, str] = {}
    inner: dict[str, str] = {}
    secrets: list[str] = []
    wants_skip = False
    for raw_name, raw_value in raw:
        name = raw_name.decode("latin-1")
        wants_skip = wants_skip or (name == _SKIP and _is_true(raw_value.decode("latin-1").strip()))
        if name in READ_FREELY or name in front.readable:
            _put(headers, name, raw_value)
        elif name in _SECRETS:
            secrets.append(_secret(name, raw_value))
        elif name == _DEBUG or (trusted and (name == _SKIP or name in identity_names)):
            _put(inner, name, raw_value)
    key = None
    if not rules.keys.empty:
        key = rules.keys.find(secrets)
        if key is None:
            raise HeadwayError("A valid API key is needed", reason="unauthorized", fix="Send it as header Authorization: Bearer KEY, or api-key: KEY.")
    key_name = key.name if key is not None else None
    skip = front.skip_allowed and _is_true(inner.get(_SKIP, ""))
    request_id = headers[_REQUEST_ID] = _request_id(headers.get(_REQUEST_ID))
    return Caller(
        identity=_identity(inner, identity_names, key, peer),
        key=key,
        headers=headers,
        request_id=request_id,
        deadline_ms=_timeout(headers.get(_TIMEOUT)),
        debug=_DEBUG in inner and _is_true(inner[_DEBUG]) and front.debug.allow(peer, key_name if key and key.named else None),
        skip=skip,
        skip_refused=wants_skip and not skip,
    )


def deadline_of(caller: Caller, otherwise: float) -> Deadline:
    """The client's, or one that it cannot see, `otherwise` seconds from now."""
    if caller.deadline_ms is None:
        return Deadline.after(otherwise)
    return Deadline.after(caller.deadline_ms / 1000, visible=True)


def _identity(inner: Mapping[str, str], names: tuple[str, ...], key: Key | None, peer: str) -> Identity:
    """A named key is its holder's name, unless a trusted peer says for whom it speaks."""
    user_header, groups_header, team_header, tenant_header = names
    user = inner.get(user_header) or (key.name if key is not None and key.named else None)
    groups = tuple(filter(None, (group.strip() for group in inner.get(groups_header, "").split(",")))) if inner else ()
    return Identity(key.name if key is not None else None, user, groups, inner.get(team_header) or None, inner.get(tenant_header) or None, peer)


def _put(into: dict[str, str], name: str, raw: bytes) -> None:
    if len(raw) > HEADER_BYTES:
        raise _refused(name, f"has {len(raw)} bytes, the most is {HEADER_BYTES}")
    value = raw.decode("latin-1").strip()
    if _CONTROL.search(value):
        raise _refused(name, "holds control characters")
    if into.setdefault(name, value) != value:
        raise _refused(name, "was sent twice with different values")


def _secret(name: str, raw: bytes) -> str:
    if len(raw) > KEY_BYTES:
        raise _refused(name, f"has {len(raw)} bytes, the most is {KEY_BYTES}")
    value = raw.decode("utf-8", "surrogateescape").strip()
    if name != "authorization":
        return value
    scheme, _, rest = value.partition(" ")
    return rest.strip() if scheme.lower() == "bearer" else ""


def _request_id(given: str | None) -> str:
    if given is not None and _REQUEST_ID_FORM.fullmatch(given):
        return given
    return uuid.uuid4().hex


def _timeout(given: str | None) -> int | None:
    if given is None:
        return None
    if not given.isascii() or not given.isdecimal() or not LEAST_TIMEOUT_MS <= int(given[:12]) <= MOST_TIMEOUT_MS:
        raise _refused(_TIMEOUT, f"must be a whole number of milliseconds between {LEAST_TIMEOUT_MS} and {MOST_TIMEOUT_MS}")
    return int(given)


def _is_true(value: str) -> bool:
    return value.lower() in ("true", "1", "yes")


def _refused(name: str, what: str) -> RequestError:
    return RequestError(f"The header {name} {what}", reason="header_invalid", param=name)
