"""What an evaluation found, as numbers and as a verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headway.evaluation.judgement import Decision, Judgement, judge_task, judge_text, overall
from headway.evaluation.measurement import Measurement
from headway.evaluation.task_results import TaskComparison, compare_tasks
from headway.evaluation.text_results import Perplexity, perplexity, perplexity_increase


@dataclass(frozen=True, slots=True)
class Comparison:
    """With the baseline. `divergence_missing` says why distributions were not compared, None where they were."""

    tasks: tuple[TaskComparison, ...]
    judgements: tuple[Judgement, ...]
    divergence_missing: str | None


@dataclass(frozen=True, slots=True)
class Evaluation:
    """`measured` None: the model cannot be read or says nothing, and `problem` tells why; `cause` is what an experiment found. `senseless`: it
    writes worse than byte frequencies do."""

    model: str
    against: str | None
    decision: Decision
    settings: dict[str, Any]
    measured: Measurement | None = None
    base: Measurement | None = None
    base_kept: bool = False
    comparison: Comparison | None = None
    problem: str | None = None
    cause: str | None = None

    def as_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "model": self.model, "against": self.against, "verdict": self.decision.replace(" ", "_"), "problem": self.problem, "likely_cause": self.cause,
            "settings": self.settings, "texts": None, "tasks": None, "comparison": None, "baseline_kept": self.base_kept,
        }  # fmt: skip
        if self.measured is None:
            return found
        found["texts"] = {"names": [each.text.text.name for each in self.measured.texts], "model": perplexity(self.measured.texts).as_json()}
        found["tasks"] = [
            {"name": each.task.name, "questions": len(each.task.questions), "num_fewshot": len(each.task.examples), "model": each.as_json()}
            for each in self.measured.tasks
        ]  # fmt: skip
        if self.base is None or self.comparison is None:
            return found
        found["texts"]["against"] = perplexity(self.base.texts).as_json()
        for task, base, compared in zip(found["tasks"], self.base.tasks, self.comparison.tasks, strict=True):
            task |= {"against": base.as_json(), "difference": compared.as_json()}
        differences = self.measured.divergence
        found["comparison"] = {
            "kl": None if differences is None else differences.as_json(), "top1_agreement": None if differences is None else differences.agreement,
            "divergence_missing": self.comparison.divergence_missing, "judgements": [each.as_json() for each in self.comparison.judgements],
        }  # fmt: skip
        return found


def compared(measured: Measurement, base: Measurement, threshold: float, divergence_missing: str | None) -> Comparison:
    tasks = tuple(compare_tasks(*pair) for pair in zip(measured.tasks, base.tasks, strict=True))
    texts = (judge_text(perplexity_increase(measured.texts, base.texts), threshold),) if measured.texts else ()
    return Comparison(tasks, (*texts, *(judge_task(each, threshold) for each in tasks)), None if measured.divergence else divergence_missing)


def alone(measured: Measurement) -> Decision:
    """Without a baseline only nonsense can be told from sense."""
    if not measured.texts:
        return "cannot tell"
    return "fail" if perplexity(measured.texts).senseless else "pass"


def verdict(comparison: Comparison, measured: Perplexity | None) -> Decision:
    """A model that makes no sense fails, whatever its baseline does."""
    return "fail" if measured is not None and measured.senseless else overall(comparison.judgements)
