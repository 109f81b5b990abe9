"""Which model answers, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

ALL_REST: Final = "every backend of its models has weight 0, so they take no requests"


@dataclass(frozen=True, slots=True)
class Selection:
    """`model` is the logical name; `order` names the candidates to try, best first: a LoRA by its own name, a model by its. `scores` are by these.

    `status`: selected, planned_final, fallback, execution_required, unavailable, failed. `use_reasoning` and the two words after it come from the
    chosen modelRef and have been checked against the model's family.
    """

    model: str | None
    method: str
    reason: str
    status: str = "selected"
    order: tuple[str, ...] = ()
    scores: Mapping[str, float] = field(default_factory=dict)
    use_reasoning: bool | None = None
    reasoning_mode: str | None = None
    reasoning_effort: str | None = None
    lora: str | None = None
    sampled: bool = False
    sampling_seed: int | None = None
