"""Target: what a stage can ask, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from headway.router.deployments.calls import Answered, Unanswered
from headway.router.deployments.card import Card
from headway.router.deployments.parked import Surface


class Target(Protocol):
    """A deployment, or a service that looks like one."""

    @property
    def card(self) -> Card | None:
        """None while it cannot answer questions."""
        ...

    @property
    def most_inputs(self) -> int:
        """Of one call."""
        ...

    def fixed(self, surface: Surface) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """What its configuration adds to each body: fields and options."""
        ...

    async def ask(
        self, surface: Surface, fields: Mapping[str, Any], options: Mapping[str, Any], timeout: float
    ) -> Answered[Mapping[str, Any]] | Unanswered: ...

    def count_unanswered(self, reason: str) -> None: ...
