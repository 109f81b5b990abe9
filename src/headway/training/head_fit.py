"""A head for one task: dense -> tanh -> linear.

The dense layer only brings each state to the same spread; what is fitted is the linear layer, by logistic regression. How much it may bend to the
texts is chosen on templates that were left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold

from headway.training.sentence_encoder import States

Floats: TypeAlias = npt.NDArray[np.float32]
_STRENGTHS: Final = (0.003, 0.01, 0.03, 0.1, 0.3)
_FOLDS: Final = 4
_SPREAD: Final = 2.0  # standard deviations that reach tanh(1): beyond them states saturate


@dataclass(frozen=True, slots=True)
class FittedHead:
    """dense [hidden, hidden] and [hidden], out [labels, hidden] and [labels]; labels in the order of `labels`."""

    labels: tuple[str, ...]
    dense: Floats
    dense_bias: Floats
    out: Floats
    out_bias: Floats

    def tensors(self) -> dict[str, Floats]:
        """By the names that packages use."""
        return {"dense.weight": self.dense, "dense.bias": self.dense_bias, "out.weight": self.out, "out.bias": self.out_bias}

    def logits(self, states: States) -> npt.NDArray[np.floating[Any]]:
        """[texts, labels]."""
        found: npt.NDArray[np.floating[Any]] = np.tanh(states @ self.dense.T + self.dense_bias) @ self.out.T + self.out_bias
        return found


def fit_head(states: States, labels: Sequence[str], templates: Sequence[int], order: Sequence[str]) -> FittedHead:
    """`states` [texts, hidden] with their labels and templates."""
    mean, scale = states.mean(axis=0), _SPREAD * states.std(axis=0) + 1e-6
    dense, bias = np.diag(1 / scale), -mean / scale
    numbers = np.array([order.index(label) for label in labels])
    search = GridSearchCV(LogisticRegression(max_iter=500), {"C": list(_STRENGTHS)}, cv=GroupKFold(_FOLDS), scoring="neg_log_loss")
    model = search.fit(np.tanh(states @ dense + bias), numbers, groups=list(templates)).best_estimator_
    out, out_bias = model.coef_, model.intercept_
    if len(order) == 2:  # one logit of the second label: the same odds from two
        out, out_bias = np.vstack([-out / 2, out / 2]), np.concatenate([-out_bias / 2, out_bias / 2])
    return FittedHead(tuple(order), *(part.astype(np.float32) for part in (dense, bias, out, out_bias)))
