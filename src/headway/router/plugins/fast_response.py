"""fast_response: a fixed answer, and no backend is asked."""

from __future__ import annotations

from headway.router.config.document.decisions import Decision
from headway.router.config.document.plugins import FastResponsePlugin
from headway.router.generation.services import Services
from headway.router.plugins.completion import completion, replayed
from headway.router.plugins.plugin import Plugin
from headway.router.request.context import RequestContext
from headway.router.request.reply import Reply
from headway.router.signals.kind import Recipe


class FastResponse(Plugin):
    """200 with the configured text as an assistant's message, streamed when the client asked for a stream."""

    type = "fast_response"

    def __init__(self, message: str) -> None:
        self._message = message

    async def before(self, context: RequestContext) -> Reply | None:
        context.response_headers["x-vsr-fast-response"] = "true"
        return replayed(completion(self._message, context.view.model), context, "fast_response")


def compile_fast_response(configuration: FastResponsePlugin, decision: Decision, recipe: Recipe, services: Services) -> FastResponse:
    return FastResponse(configuration.message)
