"""header_mutation: headers of the request that goes to the backend."""

from __future__ import annotations

from headway.router.config.document.decisions import Decision
from headway.router.config.document.plugins import HeaderMutationPlugin
from headway.router.generation.services import Services
from headway.router.plugins.plugin import Plugin
from headway.router.request.context import RequestContext
from headway.router.request.reply import Reply
from headway.router.signals.kind import Recipe


class HeaderMutation(Plugin):
    """Deletions first, then replacements, then additions; an addition to a header that is set is joined to it by a comma."""

    type = "header_mutation"

    def __init__(self, configuration: HeaderMutationPlugin) -> None:
        self._deleted = [name.lower() for name in configuration.delete]
        self._updated = [(pair.name.lower(), pair.value) for pair in configuration.update]
        self._added = [(pair.name.lower(), pair.value) for pair in configuration.add]

    async def before(self, context: RequestContext) -> Reply | None:
        headers = context.upstream_headers
        headers.update(dict.fromkeys(self._deleted))
        headers.update(self._updated)
        for name, value in self._added:
            before = headers.get(name)
            headers[name] = f"{before}, {value}" if before else value
        return None


def compile_header_mutation(configuration: HeaderMutationPlugin, decision: Decision, recipe: Recipe, services: Services) -> HeaderMutation:
    return HeaderMutation(configuration)
