"""How many questions a model answers rightly, and which answers differ from those of another. Definitions of lm-evaluation-harness:
`acc` takes the choice of the highest summed log-probability, `acc_norm` divides it by the characters of the choice first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.evaluation.interval import Interval, mcnemar, paired_drop, share_error
from headway.evaluation.scoring import Numbers
from headway.evaluation.task_file import Task


@dataclass(frozen=True, slots=True)
class TaskResult:
    """`logprobs[i]` are the summed log-probabilities of the choices of question i."""

    task: Task
    logprobs: tuple[Numbers, ...]

    @property
    def answers(self) -> list[int]:
        return [int(np.argmax(each)) for each in self.logprobs]

    @property
    def normalised_answers(self) -> list[int]:
        lengths = [np.array([len(choice) for choice in question.choices], dtype=np.float64) for question in self.task.questions]
        return [int(np.argmax(each / length)) for each, length in zip(self.logprobs, lengths, strict=True)]

    @property
    def finite(self) -> bool:
        return all(bool(np.isfinite(each).all()) for each in self.logprobs)

    def right(self, answers: Sequence[int]) -> list[bool]:
        return [answer == question.answer for answer, question in zip(answers, self.task.questions, strict=True)]

    def as_json(self) -> dict[str, Any]:
        asked = len(self.task.questions)
        right, normalised = sum(self.right(self.answers)), sum(self.right(self.normalised_answers))
        return {
            "acc": right / asked, "acc_stderr": share_error(right, asked), "acc_norm": normalised / asked, "acc_norm_stderr": share_error(normalised, asked)
        }


@dataclass(frozen=True, slots=True)
class TaskComparison:
    """`lost` and `gained` answers became wrong and right; `changed` also counts one wrong answer for another. `drop` is how much lower the
    accuracy is."""

    task: Task
    lost: int
    gained: int
    changed: int
    drop: Interval
    p: float

    @property
    def asked(self) -> int:
        return len(self.task.questions)

    def as_json(self) -> dict[str, Any]:
        return {
            "changed": self.changed, "lost": self.lost, "gained": self.gained, "mcnemar_p": self.p,
            "accuracy_drop": {"value": self.drop.value, "low": self.drop.low, "high": self.drop.high},
        }  # fmt: skip


def compare_tasks(result: TaskResult, base: TaskResult) -> TaskComparison:
    """By `acc`, question by question."""
    ours, theirs = result.answers, base.answers
    pairs = list(zip(base.right(theirs), result.right(ours), strict=True))
    lost, gained = sum(a and not b for a, b in pairs), sum(b and not a for a, b in pairs)
    changed = sum(a != b for a, b in zip(theirs, ours, strict=True))
    return TaskComparison(result.task, lost, gained, changed, paired_drop(lost, gained, len(pairs)), mcnemar(lost, gained))
