"""Route: one row of the table of management endpoints."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from headway.router.management.call import Handler

_WORD = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Route:
    """`path` may hold words in braces. `permission` is what a token's role must have; None: open to everybody. `aliases` are paths of older
    versions, in the same form."""

    method: str
    path: str
    handler: Handler
    permission: str | None
    summary: str
    aliases: tuple[str, ...] = ()

    @cached_property
    def patterns(self) -> Sequence[re.Pattern[str]]:
        return [re.compile(_WORD.sub(r"(?P<\1>[^/]+)", path) + "/?") for path in (self.path, *self.aliases)]

    def match(self, path: str) -> Mapping[str, str] | None:
        for pattern in self.patterns:
            if (found := pattern.fullmatch(path)) is not None:
                return found.groupdict()
        return None


@dataclass(frozen=True, slots=True)
class Found:
    """`route` is None when the path is known with `allowed` methods only, or not at all."""

    route: Route | None
    parameters: Mapping[str, str]
    allowed: tuple[str, ...]


def find(routes: Iterable[Route], method: str, path: str) -> Found:
    allowed: list[str] = []
    for route in routes:
        parameters = route.match(path)
        if parameters is None:
            continue
        if route.method == method or (method == "HEAD" and route.method == "GET"):
            return Found(route, parameters, ())
        allowed.append(route.method)
    return Found(None, {}, tuple(dict.fromkeys(allowed)))
