"""One routed request from its body to its reply: route, plugins, backend, plugins."""

from __future__ import annotations

from headway.errors import HeadwayError
from headway.router.plugins.plugin import Plugin
from headway.router.request.context import RequestContext
from headway.router.request.reply import Reply
from headway.router.routing import route


class NoModelError(HeadwayError):
    """Routing ended without a model that could be asked."""

    reason = "no_upstream"


async def answer(context: RequestContext) -> Reply:
    """Raises HeadwayError for a request that ends without a reply; the listener writes it in the client's protocol."""
    await route(context)
    plugins = _plugins(context)
    reply = None
    ran: list[Plugin] = []
    for plugin in plugins:
        ran.append(plugin)
        reply = await plugin.before(context)
        if reply is not None:
            break
    if reply is None:
        if context.selection is None or context.selection.model is None:
            raise NoModelError("no model can answer this request", fix="Give a decision modelRefs, or set providers.defaults.model.")
        reply = await context.generation.upstreams.send(context)
    for plugin in reversed(ran):
        reply = await plugin.after(context, reply)
    return reply


def _plugins(context: RequestContext) -> list[Plugin]:
    if context.recipe is None or context.decision_name is None:
        return []
    return list(context.recipe.plugins.get(context.decision_name, ()))
