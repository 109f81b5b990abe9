"""Calibration: what was fitted for one model, as the planner asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headway.decisions.buckets import bucket_key
from headway.decisions.question import QuestionType


@dataclass(frozen=True, slots=True)
class Threshold:
    """Answers whose probability is at least `threshold` had the wanted precision on the data that it was chosen on."""

    precision: float
    threshold: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """`temperatures` by "<type>" and "<type>:<bucket>"; `thresholds` by type. `source` is the file it was read from."""

    model_sha256: str
    temperatures: Mapping[str, float]
    thresholds: Mapping[str, Threshold] = field(default_factory=dict)
    source: str = ""

    def temperature(self, kind: QuestionType, options: int) -> float | None:
        """That of the bucket, else that of the type; None when neither was fitted."""
        return self.temperatures.get(bucket_key(kind, options), self.temperatures.get(kind))
