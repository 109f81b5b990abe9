"""No web page may use the management address of its reader's machine: neither from another site, nor under a name that leads here by a trick."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

from headway.errors import HeadwayError


class ForeignPageError(HeadwayError):
    """The request comes from a page of another site."""

    reason = "forbidden"


def refuse_foreign_pages(headers: Mapping[str, str], *, any_host: bool) -> None:
    """Raises ForeignPageError. A browser names the page's site in `Origin`; a page of a site whose name was pointed at this machine (DNS rebinding)
    names that site in `Host`. `any_host`: tokens are asked for, which such a page has not."""
    host = headers.get("host", "")
    origin = headers.get("origin")
    if origin is not None and origin.lower().partition("://")[2] != host.lower():
        raise ForeignPageError("pages of other sites may not use the management address", fix="Call it from a program, or from a page that it serves.")
    if not any_host and not _is_here(host):
        raise ForeignPageError(f"the management address is not called {host[:100]}", fix="Use its IP address or localhost, or switch tokens on.")


def _is_here(host: str) -> bool:
    """An IP address, or a name without dots, which no other site can have."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:  # brackets that hold no address
        return False
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return "." not in name
    return True
