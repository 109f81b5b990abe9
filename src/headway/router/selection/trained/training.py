"""Training of the selectors with scikit-learn, down to the arrays that are saved."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC

from headway.router.selection.trained.dataset import RowsError
from headway.router.selection.trained.predictors import Arrays, Matrix


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """`k` of knn; `clusters` and `efficiency_weight` (how much of a score is cheapness, where rows state costs) of kmeans; `kernel` and `gamma` of svm
    (None: 1); `hidden` of mlp. 0 clusters means as many as the square root of half the rows, at least one for each model."""

    k: int = 7
    clusters: int = 0
    efficiency_weight: float = 0.0
    kernel: str = "rbf"
    gamma: float | None = None
    hidden: tuple[int, ...] = (64,)
    seed: int = 0


def train(algorithm: str, vectors: Matrix, values: Matrix, costs: Matrix | None, settings: TrainingSettings) -> Arrays:
    """`vectors` [rows, width] are unit vectors, `values` and `costs` [rows, models]. Raises RowsError for rows that nothing can be learned from."""
    if values.shape[1] < 2:
        raise RowsError("the rows name one model only; there is nothing to choose")
    if len(np.unique(values.argmax(axis=1))) < 2:
        raise RowsError("the same model is the best in every row; there is nothing to learn")
    return _TRAINERS[algorithm](vectors, values, costs, settings)


def _knn(vectors: Matrix, values: Matrix, costs: Matrix | None, settings: TrainingSettings) -> Arrays:
    return {"vectors": vectors, "values": values, "k": np.array([min(settings.k, len(vectors))], np.float32)}


def _kmeans(vectors: Matrix, values: Matrix, costs: Matrix | None, settings: TrainingSettings) -> Arrays:
    wanted = settings.clusters or max(values.shape[1], round((len(vectors) / 2) ** 0.5))
    fitted = KMeans(n_clusters=min(wanted, len(np.unique(vectors, axis=0))), n_init=4, random_state=settings.seed).fit(vectors)
    merit: Matrix = values
    if costs is not None and settings.efficiency_weight:
        dearest = costs.max() or 1.0
        merit = np.asarray((1 - settings.efficiency_weight) * values + settings.efficiency_weight * (1 - costs / dearest), np.float32)
    means = [merit[fitted.labels_ == cluster].mean(axis=0) for cluster in range(len(fitted.cluster_centers_))]
    return {"centres": fitted.cluster_centers_.astype(np.float32), "values": np.array(means, np.float32)}


def _svm(vectors: Matrix, values: Matrix, costs: Matrix | None, settings: TrainingSettings) -> Arrays:
    best = values.argmax(axis=1)
    gamma = 0.0 if settings.kernel == "linear" else settings.gamma or 1.0
    machines = []
    for model in range(values.shape[1]):
        if not (best == model).any():
            machines.append((np.empty((0, vectors.shape[1])), np.empty(0), -1.0))  # never the best: always against it
            continue
        fitted = SVC(kernel=settings.kernel, gamma=gamma or "scale", class_weight="balanced", random_state=settings.seed).fit(vectors, best == model)
        machines.append((fitted.support_vectors_, fitted.dual_coef_[0], float(fitted.intercept_[0])))
    sizes = [len(coefficients) for _, coefficients, _ in machines]
    coefficients = np.zeros((len(machines), sum(sizes)), np.float32)
    for model, (_, mine, _) in enumerate(machines):
        start = sum(sizes[:model])
        coefficients[model, start : start + sizes[model]] = mine
    return {
        "vectors": np.concatenate([support for support, _, _ in machines]).astype(np.float32),
        "coefficients": coefficients,
        "intercepts": np.array([intercept for _, _, intercept in machines], np.float32),
        "gamma": np.array([gamma], np.float32),
    }


def _mlp(vectors: Matrix, values: Matrix, costs: Matrix | None, settings: TrainingSettings) -> Arrays:
    best = values.argmax(axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # 500 rounds are enough, converged or not: unseen rows judge the result
        fitted = MLPClassifier(settings.hidden, max_iter=500, alpha=1e-3, random_state=settings.seed).fit(vectors, best)
    weights = [np.asarray(layer, np.float32) for layer in fitted.coefs_]
    biases = [np.asarray(layer, np.float32) for layer in fitted.intercepts_]
    weights[-1], biases[-1] = _one_output_each(weights[-1], biases[-1], list(fitted.classes_), values.shape[1])
    return {f"weights{at}": layer for at, layer in enumerate(weights)} | {f"biases{at}": layer for at, layer in enumerate(biases)}


def _one_output_each(weights: Matrix, biases: Matrix, classes: list[int], models: int) -> tuple[Matrix, Matrix]:
    """A single output of two classes becomes two; models that were never the best get an output far below the others."""
    if weights.shape[1] == 1:
        weights, biases = np.concatenate([-weights, weights], axis=1), np.concatenate([-biases, biases])
    spread_out, shifts = np.zeros((weights.shape[0], models), np.float32), np.full(models, -1e3, np.float32)
    spread_out[:, classes], shifts[classes] = weights, biases
    return spread_out, shifts


_TRAINERS: Mapping[str, Callable[[Matrix, Matrix, Matrix | None, TrainingSettings], Arrays]] = {
    "knn": _knn,
    "kmeans": _kmeans,
    "svm": _svm,
    "mlp": _mlp,
}
