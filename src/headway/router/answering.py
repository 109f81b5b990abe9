"""One routed request from its body to its reply: route, plugins, backend, plugins."""

from __future__ import annotations

from collections.abc import Sequence

from headway.errors import HeadwayError
from headway.router.plugins.plugin import Plugin
from headway.router.plugins.running import PluginRun
from headway.router.request.context import RequestContext
from headway.router.request.reply import Reply
from headway.router.routing import awake, route
from headway.router.selection.result import ALL_REST, Selection


class NoModelError(HeadwayError):
    """Routing ended without a model that could be asked."""

    reason = "no_upstream"


async def answer(context: RequestContext) -> Reply:
    """Raises HeadwayError for a request that ends without a reply; the listener writes it in the client's protocol."""
    await route(context)
    plugins = _plugins(context)
    if not plugins:
        return await _send(context)
    run = PluginRun(plugins, context)
    reply: Reply | None = None
    try:
        reply = await run.before()
        if reply is None:
            reply = await _send(context)
        return await run.after(reply)
    except BaseException as error:
        if reply is not None:
            await reply.close()  # a stream that nobody will read
        if isinstance(error, Exception):
            await run.failed(error)
        raise


async def answer_unprocessed(context: RequestContext) -> Reply:
    """Without signals, decisions and plugins: the model that the request names, or for a name that stands for routing the default model. Only
    for callers that may skip all checks."""
    name = context.generation.names.resolve(context.view.model)
    model = name.model if name.recipe is None else context.generation.recipes[name.recipe].default_model
    status = "selected" if model else "unavailable"
    found = Selection(model, "passthrough", "processing was skipped", status, order=(model,) if model else (), lora=name.lora)
    context.selection = awake(found, context.generation)
    return await _send(context)


async def _send(context: RequestContext) -> Reply:
    if context.selection is None or context.selection.model is None:
        if context.selection is not None and context.selection.reason == ALL_REST:
            raise NoModelError(f"no model can answer this request: {ALL_REST}", fix="Give one of its backend_refs a weight of at least 1.")
        raise NoModelError("no model can answer this request", fix="Give a decision modelRefs, or set providers.defaults.model.")
    return await context.generation.upstreams.send(context)


def _plugins(context: RequestContext) -> Sequence[Plugin]:
    if context.recipe is None or context.decision_name is None:
        return ()
    return context.recipe.plugins.get(context.decision_name, ())
