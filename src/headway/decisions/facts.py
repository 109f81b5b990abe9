"""What a planner must know of a model beside its reader. `runtime.model_facts.ModelFacts` has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


class Facts(Protocol):
    """`modalities` that the model reads; `limits` by the names that model cards give them."""

    @property
    def modalities(self) -> tuple[str, ...]: ...

    @property
    def limits(self) -> Mapping[str, int]: ...


@dataclass(frozen=True, slots=True)
class TextFacts:
    """Those of a language model that reads text in one piece."""

    limits: Mapping[str, int]
    modalities: tuple[str, ...] = ("text",)
