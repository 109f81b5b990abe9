"""What is asked of a model, and what it says: the log-probability of each of some tokens after those before them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Numbers: TypeAlias = npt.NDArray[np.float64]
Progress: TypeAlias = Callable[[str, float], None]
"""Stage, and the part of it that is done, 0 to 1."""


@dataclass(frozen=True, slots=True)
class ScoringRequest:
    """Score `tokens[start:]`, each after all that precede it; `start` is at least 1."""

    tokens: tuple[int, ...]
    start: int

    def __post_init__(self) -> None:
        if not 1 <= self.start <= len(self.tokens):
            raise ValueError(f"start must be from 1 to {len(self.tokens)}, got {self.start}")

    @property
    def targets(self) -> tuple[int, ...]:
        return self.tokens[self.start :]
