"""Training a selector from rows, and judging one on rows: what `vllm-sr optimize` does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from headway.router.selection.trained.artifact import Description, Trained, load, save
from headway.router.selection.trained.dataset import Row, RowsError, cost_matrix, models_of, score_matrix
from headway.router.selection.trained.judging import Judgement, judged
from headway.router.selection.trained.predictors import PREDICTORS, Matrix
from headway.router.selection.trained.training import TrainingSettings, train

_FEWEST_ROWS = 10


@dataclass(frozen=True, slots=True)
class Outcome:
    folder: Path
    description: Description
    judgement: Judgement


def train_selector(
    rows: Sequence[Row], vectors: Matrix, representation: str | None, algorithm: str, settings: TrainingSettings, output: Path, held_out: float
) -> Outcome:
    """Train on all but the share `held_out` of the rows, judge on those, and write the files to `output/<algorithm>`. Raises RowsError."""
    if len(rows) < _FEWEST_ROWS:
        raise RowsError(f"{len(rows)} rows are too few, at least {_FEWEST_ROWS} are needed")
    models = models_of(rows)
    values, costs = score_matrix(rows, models), cost_matrix(rows, models)
    order = np.random.default_rng(settings.seed).permutation(len(rows))
    count = min(len(rows) - 2, max(1, round(len(rows) * held_out)))
    test, rest = order[:count], order[count:]
    arrays = train(algorithm, vectors[rest], values[rest], None if costs is None else costs[rest], settings)
    predictor = PREDICTORS[algorithm].of(arrays)
    majority = int(np.bincount(values[rest].argmax(axis=1)).argmax())
    judgement = judged(predictor.scores(vectors[test]), values[test], models, majority)
    description = Description(
        algorithm, models, vectors.shape[1], representation, len(rest), models[majority], asdict(settings), judgement.told()
    )  # fmt: skip
    save(output / algorithm, description, arrays)
    return Outcome(output / algorithm, description, judgement)


def evaluate_selector(folder: Path, rows: Sequence[Row], vectors: Matrix, representation: str | None) -> Outcome:
    """Raises ConfigError for files that cannot be used, RowsError for vectors that are not those of its embedding model."""
    trained: Trained = load(folder)
    told = trained.description
    if vectors.shape[1] != told.width or (told.representation is not None and representation is not None and told.representation != representation):
        raise RowsError("the vectors come from another embedding model than those that the selector was trained on", fix="Train it again.")
    unknown = sorted(set(models_of(rows)) - set(told.models))
    if unknown:
        raise RowsError(f'the rows name "{unknown[0]}", which the selector was not trained on')
    majority = told.models.index(told.majority)
    return Outcome(folder, told, judged(trained.scores(vectors), score_matrix(rows, told.models), told.models, majority))
