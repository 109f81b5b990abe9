"""A decision whose action is a hand-off: its requests go to one model, whatever the decision's candidates are."""

from __future__ import annotations

from dataclasses import dataclass

from headway.errors import ConfigError
from headway.router.config.document.decisions import Decision
from headway.router.request.context import RequestContext
from headway.router.selection.result import Selection
from headway.router.signals.kind import Recipe


@dataclass(frozen=True, slots=True)
class HandOff:
    """`destination` is a provider model."""

    destination: str

    async def select(self, context: RequestContext) -> Selection:
        return Selection(self.destination, "action", "the decision hands its requests off", order=(self.destination,))

    def deployments(self) -> frozenset[str]:
        return frozenset()


def compile_hand_off(decision: Decision, recipe: Recipe) -> HandOff:
    """Raises ConfigError for a destination that is no provider model: other routers and clusters are not reached from here."""
    assert decision.action is not None
    providers = recipe.document.providers
    destination = decision.action.destination
    if destination not in {model.name for model in (providers.models if providers else None) or ()}:
        raise ConfigError(
            f'decision "{decision.name}" hands requests off to "{destination}", which is no provider model',
            param="action.destination",
            fix="Declare it in providers.models, with the address of whatever takes these requests.",
        )
    return HandOff(destination)
