"""What signals may ask of model runtimes, and what comes back. `stage` implements it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Answered(Generic[T]):
    """`read_all` is False when the model saw only a part of the input (truncated); `seconds` is the whole call."""

    value: T
    read_all: bool = True
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Unanswered:
    """`reason`: timeout, unavailable, overloaded, rejected, failed, invalid_model_output, or for input that was not read in full
    input_limit, scan_budget, deadline (`unread`)."""

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
        self, deployment: str, texts: Sequence[str], *, head: str | None = None, timeout: float | None = None
    ) -> Sequence[Answered[Distribution] | Unanswered]: ...

    async def find_spans(
        self, deployment: str, texts: Sequence[str], *, head: str | None = None, timeout: float | None = None
    ) -> Sequence[Answered[Sequence[FoundSpan]] | Unanswered]: ...

    async def embed(
        self, deployment: str, inputs: Sequence[str | Mapping[str, Any]], *, timeout: float | None = None
    ) -> Answered[Sequence[Sequence[float]]] | Unanswered:
        """Unit vectors in the order of `inputs` (texts, or `{"image": data-url}`)."""
        ...
