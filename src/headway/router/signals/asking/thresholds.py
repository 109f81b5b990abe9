"""Thresholds of built-in signals where the configuration names none: they belong to a model, not to a task.

Source of the numbers: the published defaults of vLLM-SR for its own models.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from headway.router.deployments.specification import declared
from headway.router.signals.kind import Recipe

_EVEN: Final = 0.5
_DECISION_2: Final[Mapping[str, float]] = {
    "jailbreak": 0.75, "domain": 0.28, "pii": 0.01, "fact_check": 0.93, "user_feedback": 0.37, "safety": 0.46, "modality": 0.51,
}  # fmt: skip
_SPECIALISTS_1: Final[Mapping[str, float]] = {"jailbreak": 0.5, "domain": 0.5, "pii": 0.9, "fact_check": 0.95, "user_feedback": 0.7}
_BY_ARTIFACT: Final[tuple[tuple[str, Mapping[str, float]], ...]] = (("Vela-2.0-", _DECISION_2), ("Vela-1.0-Encoder-", _SPECIALISTS_1))


def default_threshold(recipe: Recipe, deployment: str, task: str, otherwise: float = _EVEN) -> float:
    """Of the model that answers, if it is a known one."""
    found = declared(recipe.document).get(deployment)
    artifact = (found.artifact if found else None) or ""
    for beginning, numbers in _BY_ARTIFACT:
        if artifact.rsplit("/", 1)[-1].startswith(beginning):
            return numbers.get(task, otherwise)
    return otherwise
