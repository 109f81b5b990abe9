"""What each kind of trained selector says about a vector: plain numpy on arrays that were saved, so that nothing of a file is executed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

Matrix: TypeAlias = npt.NDArray[np.float32]
Arrays: TypeAlias = Mapping[str, Matrix]


class Predictor(Protocol):
    """Scores [rows, models] of unit vectors [rows, width]; greater is better, comparable within a row. Raises ValueError from `of` for arrays that do
    not fit each other."""

    def scores(self, vectors: Matrix) -> Matrix: ...


@dataclass(frozen=True, slots=True)
class Knn:
    """The mean of the scores of the `k` nearest rows, weighted by their cosine (never less than 0)."""

    vectors: Matrix  # [rows, width]
    values: Matrix  # [rows, models]
    k: int

    @classmethod
    def of(cls, arrays: Arrays) -> Knn:
        found = cls(arrays["vectors"], arrays["values"], int(arrays["k"][0]))
        _check(found.vectors.shape[0] == found.values.shape[0] and 1 <= found.k <= found.vectors.shape[0])
        return found

    def scores(self, vectors: Matrix) -> Matrix:
        likeness = vectors @ self.vectors.T
        nearest = np.argpartition(-likeness, self.k - 1, axis=1)[:, : self.k]
        weights = np.maximum(np.take_along_axis(likeness, nearest, axis=1), 0) + 1e-6
        return np.asarray((weights[:, :, None] * self.values[nearest]).sum(axis=1) / weights.sum(axis=1, keepdims=True), np.float32)


@dataclass(frozen=True, slots=True)
class Kmeans:
    """The scores of the nearest cluster."""

    centres: Matrix  # [clusters, width]
    values: Matrix  # [clusters, models]

    @classmethod
    def of(cls, arrays: Arrays) -> Kmeans:
        found = cls(arrays["centres"], arrays["values"])
        _check(found.centres.shape[0] == found.values.shape[0])
        return found

    def scores(self, vectors: Matrix) -> Matrix:
        distances = (self.centres**2).sum(axis=1)[None, :] - 2 * vectors @ self.centres.T
        return np.asarray(self.values[distances.argmin(axis=1)], np.float32)


@dataclass(frozen=True, slots=True)
class Svm:
    """One machine per model, this model against the others: sum of coefficient times kernel, plus intercept. `gamma` 0 is the linear kernel."""

    vectors: Matrix  # [support vectors of all machines, width]
    coefficients: Matrix  # [models, support vectors of all machines]: 0 for those of other machines
    intercepts: Matrix  # [models]
    gamma: float

    @classmethod
    def of(cls, arrays: Arrays) -> Svm:
        found = cls(arrays["vectors"], arrays["coefficients"], arrays["intercepts"], float(arrays["gamma"][0]))
        _check(found.coefficients.shape == (found.intercepts.shape[0], found.vectors.shape[0]) and found.gamma >= 0)
        return found

    def scores(self, vectors: Matrix) -> Matrix:
        kernel = vectors @ self.vectors.T
        if self.gamma:
            squares = (vectors**2).sum(axis=1)[:, None] + (self.vectors**2).sum(axis=1)[None, :]
            kernel = np.exp(-self.gamma * np.maximum(squares - 2 * kernel, 0))
        return np.asarray(kernel @ self.coefficients.T + self.intercepts, np.float32)


@dataclass(frozen=True, slots=True)
class Mlp:
    """Layers of weights and biases with relu between them; the last one's outputs are the scores."""

    layers: tuple[tuple[Matrix, Matrix], ...]

    @classmethod
    def of(cls, arrays: Arrays) -> Mlp:
        depth = sum(name.startswith("weights") for name in arrays)
        layers = tuple((arrays[f"weights{at}"], arrays[f"biases{at}"]) for at in range(depth))
        _check(depth > 0 and all(weights.shape[1] == biases.shape[0] for weights, biases in layers))
        _check(all(one[0].shape[1] == other[0].shape[0] for one, other in pairwise(layers)))
        return cls(layers)

    def scores(self, vectors: Matrix) -> Matrix:
        found = vectors
        for at, (weights, biases) in enumerate(self.layers):
            found = found @ weights + biases
            if at < len(self.layers) - 1:
                found = np.maximum(found, 0)
        return np.asarray(found, np.float32)


PREDICTORS: Mapping[str, type[Knn] | type[Kmeans] | type[Svm] | type[Mlp]] = {"knn": Knn, "kmeans": Kmeans, "svm": Svm, "mlp": Mlp}


def _check(fits: bool) -> None:
    if not fits:
        raise ValueError("the arrays do not fit each other")
