"""LabelSource: numbers for the labels of a text, from the head of a classifier or from a question to a decision model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from headway.router.deployments.calls import Answered, StageCalls, Unanswered
from headway.router.signals.asking import reasons

YES, NO = "true", "false"


class LabelSource(Protocol):
    """`asked` is a word of `reasons`; `deployment` is who is asked."""

    @property
    def asked(self) -> str: ...

    @property
    def deployment(self) -> str: ...

    async def read(self, calls: StageCalls, texts: Sequence[str]) -> Sequence[Answered[Mapping[str, float]] | Unanswered]:
        """At least one answer; together they cover all `texts`, of which there is at least one."""
        ...


@dataclass(frozen=True, slots=True)
class HeadSource:
    """A head answers for each text; labels are those of the model."""

    deployment: str
    head: str | None = None

    @property
    def asked(self) -> str:
        return reasons.HEAD

    async def read(self, calls: StageCalls, texts: Sequence[str]) -> Sequence[Answered[Mapping[str, float]] | Unanswered]:
        answers = await calls.classify(self.deployment, texts, head=self.head)
        return [_given(answer, answer.value.scores) if isinstance(answer, Answered) else answer for answer in answers]


@dataclass(frozen=True, slots=True)
class QuestionSource:
    """One question about all texts, joined. Labels are the keys of its options; those of a noul are `true` and `false`."""

    deployment: str
    question: Mapping[str, Any]
    full: bool = False

    @property
    def asked(self) -> str:
        return reasons.QUESTION

    async def read(self, calls: StageCalls, texts: Sequence[str]) -> Sequence[Answered[Mapping[str, float]] | Unanswered]:
        answer = await calls.decide(self.deployment, self.question, "\n\n".join(texts), full=self.full)
        return [_given(answer, labels_of(answer.value)) if isinstance(answer, Answered) else answer]


def labels_of(answer: Mapping[str, Any]) -> Mapping[str, float]:
    """Of a noul, choice, score or set on the wire."""
    if "noul" in answer:
        yes = float(answer["noul"])
        return {YES: yes, NO: 1.0 - yes}
    return {str(key): float(value) for key, value in answer["probabilities"].items()}


def _given(answer: Answered[Any], labels: Mapping[str, float]) -> Answered[Mapping[str, float]]:
    return Answered(labels, answer.read_all, answer.seconds)
