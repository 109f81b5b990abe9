"""Why a signal does not know: the bounded codes of `signal_errors`."""

from __future__ import annotations

from collections.abc import Iterable

from headway.router.deployments.calls import Unanswered
from headway.router.observation import Observation
from headway.router.truth import Truth

QUESTION, HEAD, VECTORS = "decision", "classifier", "embedding"
"""What was asked, which is the first word of a code: a decision model, a head of a classifier, an embedding model."""

_WORDS = {"failed": "evaluation_failed", "deadline": "timeout"}


def code_of(asked: str, reason: str) -> str:
    """`decision_timeout`, `classifier_evaluation_failed`, ...; `reason` is a word of `Unanswered`."""
    return f"{asked}_{_WORDS.get(reason, reason)}"


def unknown(kind: str, names: Iterable[str], asked: str, answer: Unanswered) -> list[Observation]:
    return [Observation(kind, name, Truth.UNKNOWN, reason=code_of(asked, answer.reason)) for name in names]


def nothing_to_read(kind: str, names: Iterable[str]) -> list[Observation]:
    """For requests without the text that a signal reads: no model is asked."""
    return [Observation(kind, name, Truth.FALSE) for name in names]
