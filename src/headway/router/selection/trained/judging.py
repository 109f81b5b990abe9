"""How good choices are, beside choosing at random and always choosing the same model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from headway.router.selection.trained.predictors import Matrix


@dataclass(frozen=True, slots=True)
class Judgement:
    """Over the same rows: `accuracy` is the share of rows where (one of) the best was chosen, `score` the mean score of what was chosen. `majority`
    always takes the model that was best most often in training, `random` is the expectation over equal chances, `best` what a choice without error gets."""

    rows: int
    accuracy: float
    majority_accuracy: float
    random_accuracy: float
    score: float
    majority_score: float
    random_score: float
    best_score: float
    chosen: dict[str, int]

    def told(self) -> dict[str, Any]:
        return asdict(self)


def judged(predicted: Matrix, values: Matrix, models: Sequence[str], majority: int) -> Judgement:
    """`predicted` and `values` are [rows, models]."""
    values = values.astype(np.float64)
    rows = np.arange(len(values))
    choice = predicted.argmax(axis=1)
    best = values.max(axis=1)
    is_best = values >= best[:, None]
    counts = np.bincount(choice, minlength=len(models))
    return Judgement(
        rows=len(values),
        accuracy=float(is_best[rows, choice].mean()),
        majority_accuracy=float(is_best[:, majority].mean()),
        random_accuracy=float(is_best.mean()),
        score=float(values[rows, choice].mean()),
        majority_score=float(values[:, majority].mean()),
        random_score=float(values.mean()),
        best_score=float(best.mean()),
        chosen={model: int(count) for model, count in zip(models, counts, strict=True)},
    )
