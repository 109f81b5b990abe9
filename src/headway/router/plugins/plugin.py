"""Plugin: something that a decision does to its requests and answers."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headway.router.config.document.decisions import Decision
from headway.router.request.context import RequestContext
from headway.router.request.reply import Reply
from headway.router.signals.kind import Recipe

if TYPE_CHECKING:
    from headway.router.generation.services import Services


class Plugin:
    """All hooks do nothing unless a plugin has them.

    `before` runs before a backend is asked: it may replace `context.body`, add response headers, or return a Reply, and then no backend is asked
    (plugins further down the list do not run, `after` of those that ran does). `after` gets every reply, its own kind's included, and returns it
    or another one; for a stream it wraps `chunks` without holding them back, unless its documentation says so. `failed` is told of a request
    that ended in an error instead of a reply. Hooks run in the order of `PLUGINS` before, in reverse after. A hook that raises HeadwayError ends
    the request with that error; anything else is logged, counted and skipped, except for guards (`fails_closed`).
    """

    type: str = ""
    fails_closed: bool = False

    async def before(self, context: RequestContext) -> Reply | None:
        return None

    async def after(self, context: RequestContext, reply: Reply) -> Reply:
        return reply

    async def failed(self, context: RequestContext, error: Exception) -> None:
        return None

    def deployments(self) -> frozenset[str]:
        """The deployments that it asks, so that they are started."""
        return frozenset()


@dataclass(frozen=True, slots=True)
class PluginKind:
    """`type` as in `decisions[].plugins[].type`; `compile` gets the typed configuration and raises ConfigError.

    `compile` returns None for a plugin that its configuration switches off.
    """

    type: str
    configuration: builtins.type[Any]
    compile: Callable[[Any, Decision, Recipe, Services], Plugin | None]
