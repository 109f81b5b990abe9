"""What a client says about caching of its own request."""

from __future__ import annotations

import re
from dataclasses import dataclass

from headway.router.config.document.cache_plugin import ResponseCacheRequestControls
from headway.router.request.context import RequestContext

_DIRECTIVE = re.compile(r"([a-z-]+)(?:\s*=\s*\"?(\d{1,9})\"?)?")
_LONGEST_HEADER = 256


@dataclass(frozen=True, slots=True)
class Controls:
    """`max_age`: the oldest answer that will do, in seconds. `ttl`: how long this one is kept, instead of what is configured."""

    reads: bool = True
    writes: bool = True
    max_age: int | None = None
    ttl: int | None = None


def controls_of(context: RequestContext, settings: ResponseCacheRequestControls) -> Controls:
    """Directives that the route does not allow, or that nobody knows, change nothing. `no-cache` asks for a new answer and keeps it, `no-store`
    keeps none, `bypass` neither reads nor keeps."""
    if not settings.enabled:
        return Controls()
    said: dict[str, int | None] = {}
    for part in context.headers.get(settings.header.lower(), "")[:_LONGEST_HEADER].split(","):
        found = _DIRECTIVE.fullmatch(part.strip().lower())
        if found and found[1] in settings.allowed:
            said[found[1]] = int(found[2]) if found[2] else None
    ttl = said.get("ttl")
    if ttl is not None and settings.max_ttl_seconds is not None:
        ttl = min(ttl, settings.max_ttl_seconds)
    return Controls(
        reads="no-cache" not in said and "bypass" not in said,
        writes="no-store" not in said and "bypass" not in said,
        max_age=said.get("max-age"),
        ttl=ttl,
    )
