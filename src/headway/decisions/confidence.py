"""How sure an answer is: one definition for all readouts, that of the System One protocol, so that thresholds carry over."""

from __future__ import annotations

import numpy as np

from headway.decisions.reader import FloatArray


def choice_confidence(probabilities: FloatArray) -> float:
    """(max p - 1/n) / (1 - 1/n): 0 for a uniform distribution, 1 for a certain one, and for one option."""
    n = len(probabilities)
    return 1.0 if n == 1 else float(np.clip((probabilities.max() - 1 / n) / (1 - 1 / n), 0.0, 1.0))


def score_confidence(probabilities: FloatArray) -> float:
    """1 - (mean distance from the likeliest level) / (that of a uniform distribution from its middle), at least 0."""
    n = len(probabilities)
    if n == 1:
        return 1.0
    levels = np.arange(n)
    spread = float(np.abs(levels - (n - 1) / 2).mean())
    return max(0.0, 1.0 - float(probabilities @ np.abs(levels - int(probabilities.argmax()))) / spread)
