"""The output head of a model without its layers: all that is needed of a baseline whose hidden states are known."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from headway.evaluation.scoring import Progress
from headway.evaluation.subject import Subject, load, load_plan, planned
from headway.evaluation.token_scores import HeadOf
from headway.models.native import NativePlan

_MODULES: Final = ("embedding", "head")  # a tied head takes its weights from the embedding


def load_head(subject: Subject, progress: Progress) -> HeadOf:
    """Of a native model only these weights are read; of others all are, and the layers are let go of."""
    plan = planned(subject)
    if not isinstance(plan, NativePlan):
        return load(subject, progress).head
    alone = replace(plan, weights=tuple(weight for weight in plan.weights if weight.module in _MODULES))
    return load_plan(subject, alone, progress).head
