"""Runtimes that answer what a test says, in the form that signals get it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from headway.router.deployments.calls import Answered, Distribution, FoundSpan, Unanswered
from headway.router.request.deadline import Deadline


@dataclass
class ScriptedCalls:
    """`decisions`: the answer to a question; `heads`: scores of a text; `spans`; `vectors`: of an input. Any of them may return Unanswered.

    `calls` has (surface, deployment, what was asked) in order.
    """

    decisions: Callable[[Mapping[str, Any], Any], Any] = lambda question, state: Unanswered("unavailable")
    heads: Callable[[str], Any] = lambda text: Unanswered("unavailable")
    spans: Callable[[str], Any] = lambda text: Unanswered("unavailable")
    vectors: Callable[[Any], Any] = lambda given: Unanswered("unavailable")
    representation: str = "model-1"
    read_all: bool = True
    calls: list[tuple[str, str, Any]] = field(default_factory=list)
    full: list[bool] = field(default_factory=list)
    timeouts: list[float | None] = field(default_factory=list)

    async def decide(self, deployment: str, question: Any, state: Any, *, timeout: float | None = None, full: bool = False) -> Any:
        self.calls.append(("decide", deployment, (question, state)))
        self.full.append(full)
        self.timeouts.append(timeout)
        return self._answer(self.decisions(question, state))

    async def classify(self, deployment: str, texts: Sequence[str], *, head: str | None = None, timeout: float | None = None) -> Any:
        self.calls.append(("classify", deployment, list(texts)))
        return [self._answer(found if isinstance(found := self.heads(text), Unanswered) else Distribution(found)) for text in texts]

    async def find_spans(self, deployment: str, texts: Sequence[str], *, head: str | None = None, timeout: float | None = None) -> Any:
        self.calls.append(("find_spans", deployment, list(texts)))
        return [self._answer(found if isinstance(found := self.spans(text), Unanswered) else [FoundSpan(*span) for span in found]) for text in texts]

    async def embed(self, deployment: str, inputs: Sequence[Any], *, timeout: float | None = None) -> Any:
        self.calls.append(("embed", deployment, list(inputs)))
        made = [self.vectors(given) for given in inputs]
        failure = next((one for one in made if isinstance(one, Unanswered)), None)
        return failure or Answered(made, representation=self.representation)

    def leave(self) -> None:
        self.calls.append(("leave", "", None))

    def _answer(self, found: Any) -> Any:
        return found if isinstance(found, Unanswered) else Answered(found, self.read_all)


@dataclass
class ScriptedStages:
    """Every stage has the same calls."""

    calls: ScriptedCalls

    def open(self, deadline: Deadline) -> ScriptedStages:
        return self

    def join(self) -> ScriptedCalls:
        return self.calls
