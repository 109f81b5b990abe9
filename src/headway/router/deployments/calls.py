"""What signals may ask of model runtimes, and what comes back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from headway.router.request.deadline import Deadline

if TYPE_CHECKING:
    from headway.router.deployments.card import Card
    from headway.router.deployments.runtime_client import Exchange
    from headway.router.native.grants import Grants

T = TypeVar("T")

EMBEDDING_ENDPOINT = "embeddings.semantic.endpoint"
"""The name under which `StageCalls.embed` asks the OpenAI-compatible service of `global.model_catalog.embeddings.semantic.endpoint`. No
deployment can have it: their names have no dots."""


@dataclass(frozen=True, slots=True)
class Answered(Generic[T]):
    """`read_all` is False when the model saw only a part of the input (truncated); `seconds` is the whole call. `representation` comes with
    vectors: the identity of the model, layer and size that made them, under which they may be kept and compared."""

    value: T
    read_all: bool = True
    seconds: float = 0.0
    representation: str = ""


@dataclass(frozen=True, slots=True)
class Unanswered:
    """`reason` is a word of `outcome.REASONS`: timeout, unavailable, overloaded, rejected, failed, invalid_model_output, missing_answer,
    input_coverage_unknown, unknown_deployment, or for input that was not read in full input_limit, scan_budget, deadline (`unread`)."""

    reason: str

    @property
    def unread(self) -> bool:
        return self.reason in ("input_limit", "scan_budget", "deadline")


@dataclass(frozen=True, slots=True)
class Distribution:
    """Labels of a sequence head with their probabilities (or independent scores), in the model's order."""

    scores: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class FoundSpan:
    """A half-open range [start, end) of code points of the text that was sent."""

    label: str
    start: int
    end: int
    score: float
    text: str = ""


class StageCalls(Protocol):
    """The calls of one stage of one request. All questions for one deployment leave in one decisions call, as soon as every signal of the stage
    waits for an answer or has ended. `timeout` is in seconds; the stage's own deadline always holds.

    None of these raises for a runtime that does not answer.
    """

    async def decide(
        self, deployment: str, question: Mapping[str, Any], state: Any, *, timeout: float | None = None, full: bool = False
    ) -> Answered[Mapping[str, Any]] | Unanswered:
        """One System One question (`{"type", "instructions", ...}` as on the wire) about `state`. `full` demands that everything is read.

        The answer is that of the wire, re-checked: exact option set, probabilities in [0, 1] that sum to 1 +- 0.02, score within levels. A set
        is returned as `{"type": "set", "probabilities": {...}, "selected": [...]}`, a span as `{"type": "span", "spans": [...]}`.
        """
        ...

    async def classify(
        self, deployment: str, texts: Sequence[str | Mapping[str, Any]], *, head: str | None = None, timeout: float | None = None
    ) -> Sequence[Answered[Distribution] | Unanswered]:
        """One answer for each input: a text, `{"text", "text_pair"}` or `{"context", "question", "answer"}`."""
        ...

    async def find_spans(
        self, deployment: str, texts: Sequence[str | Mapping[str, Any]], *, head: str | None = None, timeout: float | None = None
    ) -> Sequence[Answered[Sequence[FoundSpan]] | Unanswered]: ...

    async def embed(
        self, deployment: str, inputs: Sequence[str | Mapping[str, Any]], *, timeout: float | None = None
    ) -> Answered[Sequence[Sequence[float]]] | Unanswered:
        """Unit vectors in the order of `inputs` (texts, or `{"image": data-url}`), with their `representation`."""
        ...

    async def rerank(
        self, deployment: str, query: str, documents: Sequence[str], *, timeout: float | None = None
    ) -> Sequence[Answered[float] | Unanswered]:
        """The relevance (0 to 1) of each document, in the order of `documents`."""
        ...


class Participant(StageCalls, Protocol):
    """The calls of one signal of a stage."""

    def leave(self) -> None:
        """This signal asks nothing more. Called exactly once, also when the signal failed."""
        ...


class Stage(Protocol):
    """The calls of all signals of one stage of one request, bundled: each signal joins before the first of them runs."""

    def join(self) -> Participant: ...


class Stages(Protocol):
    """Opens stages; outlives a request."""

    def open(self, deadline: Deadline) -> Stage:
        """`deadline` bounds every call of the stage."""
        ...


class Deployments(Stages, Protocol):
    """The model runtimes of one generation, by deployment name."""

    def card(self, deployment: str) -> Card | None:
        """None while no worker of it is ready."""
        ...

    def grants(self, listener: str) -> Grants:
        """What clients of a listener may ask natively."""
        ...

    async def pass_on(self, deployment: str, path: str, body: Callable[[str], bytes], seconds: float, most: int) -> Exchange:
        """A client's own call; `body` gets the name that the model has at the worker. Raises CallFailed."""
        ...

    async def close(self) -> None:
        """Nothing asks any more."""
        ...
