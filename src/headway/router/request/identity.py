"""Identity: who sends a request, as far as the router has reason to believe it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Identity:
    """Only what was authenticated, or came from a trusted peer. `key` is the name of the listener's API key, never the key.

    `peer` is the address of the connection ("" for a Unix socket).
    """

    key: str | None = None
    user: str | None = None
    groups: tuple[str, ...] = ()
    team: str | None = None
    tenant: str | None = None
    peer: str = ""
