"""Whose entries a request may read and write. Only an authenticated identity counts, never what a body or an untrusted header says."""

from __future__ import annotations

from headway.router.plugins.response_cache.fingerprint import canonical
from headway.router.request.identity import Identity


def scope_of(identity: Identity, scope: str) -> str | None:
    """A text that is equal for requests that share entries; None for a request that shares nothing.

    Of a `user` (else of a listener's key, which stands for whoever holds it), a `team` or a `tenant`; users and teams of two tenants never meet.
    The parts are quoted, so that no two lists of names give the same text.
    """
    if scope == "global":
        return _named("global")
    if scope == "tenant":
        return _named("tenant", identity.tenant) if identity.tenant else None
    if scope == "team":
        return _named("team", identity.tenant, identity.team) if identity.team else None
    if identity.user:
        return _named("user", identity.tenant, identity.user)
    return _named("key", identity.tenant, identity.key) if identity.key else None


def _named(*parts: str | None) -> str:
    return canonical(parts).decode()
