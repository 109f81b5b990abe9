"""Selectors compiled from documents, and requests to select for."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from headway.router.config.document.document import Document
from headway.router.deployments.calls import Answered, Unanswered
from headway.router.generation.generation import Generation
from headway.router.generation.services import Services
from headway.router.observation import Observation
from headway.router.request.context import RequestContext
from headway.router.request.deadline import Deadline
from headway.router.request.identity import Identity
from headway.router.selection.hand_off import HandOff
from headway.router.selection.selector import DecisionSelector
from headway.router.selection.table import compile_selector
from headway.router.signals.kind import Recipe
from headway.router.truth import Truth

BINDING = {"deployments": {"e": {"provider": "model_runtime", "endpoint": "http://h:1"}}, "bindings": {"embedding": {"deployment": "e", "contract": "embedding.v1"}}}


class ScriptedCalls:
    """Stands for a stage of runtimes: `vectors` by text, `answer` to a question."""

    def __init__(self, vectors: dict[str, list[float]] | Unanswered | None = None, answer: Any = None, representation: str = "r1"):
        self.vectors, self.answer, self.representation = vectors or {}, answer, representation
        self.asked: list[Any] = []
        self.left = 0

    def open(self, deadline: Deadline) -> ScriptedCalls:
        return self

    def join(self) -> ScriptedCalls:
        return self

    def leave(self) -> None:
        self.left += 1

    async def embed(self, deployment: str, inputs: Any, *, timeout: float | None = None) -> Any:
        self.asked.append((deployment, list(inputs)))
        if isinstance(self.vectors, Unanswered):
            return self.vectors
        return Answered([self.vectors[each] for each in inputs], representation=self.representation)

    async def decide(self, deployment: str, question: Any, state: Any, *, timeout: float | None = None, full: bool = False) -> Any:
        self.asked.append((deployment, question, state, timeout))
        return self.answer if isinstance(self.answer, Unanswered) else Answered(self.answer)


class Chooser:
    """One decision `d` of a document."""

    def __init__(self, refs: list[dict[str, Any]], algorithm: dict[str, Any] | None = None, calls: ScriptedCalls | None = None, **parts: Any):
        names = dict.fromkeys(ref["model"] for ref in refs)
        prices = parts.pop("prices", {})
        models = [{"name": name, **({"pricing": prices[name]} if name in prices else {})} for name in names]
        decision = {"name": "d", "modelRefs": refs, **({"algorithm": algorithm} if algorithm else {}), **parts.pop("decision", {})}
        catalog = {"model_catalog": BINDING} | parts.pop("global_", {})
        whole = {"version": "v0.3", "providers": {"models": models}, "routing": {"decisions": [decision], **parts}, "global": catalog}
        self.document = Document.model_validate(whole)
        assert self.document.routing is not None
        self.services = Services(Path("/nonexistent"))
        self.calls = calls or ScriptedCalls()
        recipe = Recipe(self.document, self.document.routing)
        self.selector: DecisionSelector | HandOff = compile_selector((self.document.routing.decisions or [])[0], recipe, self.services)

    def context(self, text: str = "hi", observations: tuple[Observation, ...] = (), **body: Any) -> RequestContext:
        generation = cast(Generation, SimpleNamespace(services=self.services, deployments=self.calls, resting=frozenset()))
        whole = {"model": "auto", "messages": [{"role": "user", "content": text}], **body}
        context = RequestContext(generation, whole, {}, Identity(), Deadline.after(45), "r1")
        context.observations.add(observations)
        return context


def domain(name: str, confidence: float) -> Observation:
    return Observation("domain", name, Truth.TRUE, confidence)
