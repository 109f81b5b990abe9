"""How often a model is right on the packaged set, and whether that could be luck."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import comb
from typing import Any, Final

from headway.decisions.question import QuestionType
from headway.runtime.loaded_model import LoadedModel
from headway.runtime.plan import run_plan
from headway.runtime.quality.labelled_set import LabelledQuestion
from headway.wire.decisions import DecisionPart, DecisionRequest

SIGNIFICANCE: Final = 0.01


@dataclass(frozen=True, slots=True)
class TypeQuality:
    """`right` of `asked` questions; `majority` would be right if the commonest answer of each domain were given always.
    `p` is the chance that a guesser of that share is right at least as often (binomial)."""

    asked: int
    right: int
    majority: int
    p: float

    @property
    def beats_majority(self) -> bool:
        return self.right > self.majority and self.p < SIGNIFICANCE


def evaluate(
    model: LoadedModel, questions: Sequence[LabelledQuestion], progress: Callable[[int], None] = lambda done: None
) -> dict[QuestionType, TypeQuality]:
    """Ask one by one, on this thread. Types that the model does not answer are left out; a failed question is a wrong one."""
    right: Counter[QuestionType] = Counter()
    asked = [each for each in questions if each.question.type in model.facts.question_types]
    for done, each in enumerate(asked):
        request = DecisionRequest(DecisionPart(each.state, {"q": each.question}), "runtime")
        answer = run_plan(model, model.planners["decisions"](request))["answers"]["q"]
        right[each.question.type] += _chosen(answer, each) == each.truth
        progress(done + 1)
    return {kind: quality_of([e for e in asked if e.question.type == kind], right[kind]) for kind in dict.fromkeys(e.question.type for e in asked)}


def quality_of(asked: Sequence[LabelledQuestion], right: int) -> TypeQuality:
    majority = sum(max(counts.values()) for counts in _by_domain(asked).values())
    return TypeQuality(len(asked), right, majority, at_least(right, len(asked), majority / len(asked)))


def _by_domain(asked: Iterable[LabelledQuestion]) -> dict[str, Counter[int]]:
    counts: dict[str, Counter[int]] = {}
    for each in asked:
        counts.setdefault(each.domain, Counter())[each.truth] += 1
    return counts


def _chosen(answer: dict[str, Any], asked: LabelledQuestion) -> int | None:
    if "error" in answer:
        return None
    if asked.question.type == "noul":
        return int(answer["noul"] > 0.5)
    return [option.key for option in asked.question.options].index(answer["choice"])


def at_least(right: int, asked: int, share: float) -> float:
    """P(X >= right) for X binomial(asked, share)."""
    return min(1.0, sum(comb(asked, k) * share**k * (1 - share) ** (asked - k) for k in range(right, asked + 1)))
