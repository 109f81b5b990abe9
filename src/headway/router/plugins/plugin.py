"""Plugin: something that a decision does to its requests and answers."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headway.router.config.document.document import Document
from headway.router.request.context import RequestContext
from headway.router.request.reply import Reply

if TYPE_CHECKING:
    from headway.router.generation.services import Services


class Plugin:
    """Both hooks do nothing unless a plugin has them.

    `before` runs before a backend is asked: it may replace `context.body`, add response headers, or return a Reply, and then no backend is asked
    (plugins further down the list do not run, `after` of those that ran does). `after` gets every reply, its own kind's included, and returns it
    or another one; for a stream it wraps `chunks` without holding them back, unless its documentation says so. Hooks run in the order of
    `PLUGINS` before, in reverse after. A hook that raises HeadwayError ends the request with that error; anything else is logged, counted
    and skipped, except for guards, which fail closed.
    """

    type: str = ""

    async def before(self, context: RequestContext) -> Reply | None:
        return None

    async def after(self, context: RequestContext, reply: Reply) -> Reply:
        return reply


@dataclass(frozen=True, slots=True)
class PluginKind:
    """`type` as in `decisions[].plugins[].type`; `compile` gets the typed configuration and raises ConfigError."""

    type: str
    configuration: builtins.type[Any]
    compile: Callable[[Any, Document, Services], Plugin]
    other_names: tuple[str, ...] = ()
