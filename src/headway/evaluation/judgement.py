"""Whether a model is still good: by what is certain, not by what was measured once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from headway.evaluation.interval import Interval
from headway.evaluation.task_results import TaskComparison

_Z: Final = 1.96
Decision = Literal["pass", "fail", "cannot tell"]


@dataclass(frozen=True, slots=True)
class Judgement:
    """Of one measure: `worse` is what was lost, as a share; at most `threshold` may be. One that is not `proving` can fail a model, and its passing
    is not asked for. `more` tells what it would take to decide."""

    measure: str
    decision: Decision
    worse: Interval
    threshold: float
    proving: bool = True
    more: str | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "measure": self.measure, "decision": self.decision, "worse": self.worse.value, "low": self.worse.low, "high": self.worse.high,
            "threshold": self.threshold, "decides": self.proving, "more": self.more,
        }  # fmt: skip


def decide(worse: Interval, threshold: float) -> Decision:
    """Pass and fail only where the whole interval says so."""
    if not math.isfinite(worse.value) or worse.low > threshold:
        return "fail"
    return "pass" if worse.high <= threshold else "cannot tell"


def judge_text(worse: Interval, threshold: float) -> Judgement:
    decision = decide(worse, threshold)
    more = "a longer text (--text) narrows the interval" if decision == "cannot tell" else None
    return Judgement("perplexity", decision, worse, threshold, more=more)


def judge_task(found: TaskComparison, threshold: float) -> Judgement:
    decision = decide(found.drop, threshold)
    more = f"about {_needed(found, threshold):,} questions would tell" if decision == "cannot tell" else None
    return Judgement(f"accuracy on {found.task.name}", decision, found.drop, threshold, proving=not found.task.packaged, more=more)


def overall(judgements: Sequence[Judgement]) -> Decision:
    """One failure fails. It takes all that are `proving` to pass, and one at least."""
    if any(each.decision == "fail" for each in judgements):
        return "fail"
    asked = [each for each in judgements if each.proving]
    return "pass" if asked and all(each.decision == "pass" for each in asked) else "cannot tell"


def _needed(found: TaskComparison, threshold: float) -> int:
    """Questions at which the interval reaches no further than from the estimate to the threshold, if answers go on to change as often."""
    distance = max(abs(threshold - found.drop.value), threshold / 2)
    changing = (found.lost + found.gained + 2) / (found.asked + 2)
    return max(math.ceil(_Z**2 * changing / distance**2 / 100) * 100, found.asked + 1)
