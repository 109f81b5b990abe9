"""What waits in a stage until it is sent, and how it is answered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from headway.router.deployments.calls import Unanswered

if TYPE_CHECKING:
    from headway.router.deployments.participant import RuntimeParticipant

Surface: TypeAlias = Literal["decisions", "classify", "embeddings", "rerank"]


@dataclass(eq=False, slots=True)
class Parked:
    """One call of one participant, in whose `waiting` it stands until it is answered. `since` and `until` are on the clock of the event loop: when
    it was parked, and when its caller stops waiting."""

    deployment: str
    participant: RuntimeParticipant
    future: asyncio.Future[Any]
    since: float
    until: float
    timer: asyncio.TimerHandle | None = None

    def refused(self, reason: str) -> Any:
        """The answer when there is none."""
        return Unanswered(reason)


@dataclass(eq=False, slots=True)
class ParkedQuestion(Parked):
    """`question` as on the wire; `full`: everything must be read."""

    question: Mapping[str, Any] = field(default_factory=dict)
    state: Any = None
    full: bool = False


@dataclass(eq=False, slots=True)
class ParkedInputs(Parked):
    """Calls to a deployment with the same `key` differ only in their inputs, and become one. `fields` are the rest of the body. `read` makes one
    answer for each input of a body; `combine`, where it is set, one of all of them."""

    surface: Surface = "classify"
    key: Hashable = None
    inputs: Sequence[Any] = ()
    fields: Mapping[str, Any] = field(default_factory=dict)
    read: Callable[[Mapping[str, Any], Sequence[Any], float], list[Any]] = lambda body, inputs, seconds: []
    combine: Callable[[Sequence[Any]], Any] | None = None

    def refused(self, reason: str) -> Any:
        each = [Unanswered(reason) for _ in self.inputs]
        return self.combined(each) if each else each

    def combined(self, answers: Sequence[Any]) -> Any:
        return list(answers) if self.combine is None else self.combine(answers)
