"""LoadedModel: what a family hands over once weights are in memory."""

from __future__ import annotations

import abc
from collections.abc import Callable, Generator, Mapping, Sequence
from random import Random
from typing import Any, Literal, TypeAlias

from headway.runtime.model_facts import ModelFacts
from headway.runtime.row import Outcome, Row

Surface: TypeAlias = Literal["decisions", "classify", "embeddings", "rerank"]
SURFACES: tuple[Surface, ...] = ("decisions", "classify", "embeddings", "rerank")
Planner: TypeAlias = Callable[[Any], Generator[Sequence[Row], Sequence[Outcome], dict[str, Any]]]
"""A checked request of one surface (`wire.classify.ClassifyRequest`, ...) -> its plan (see `runtime.plan.Plan`)."""


class LoadedModel(abc.ABC):
    """One model in memory. `forward` runs on the device thread only; planners run anywhere, several at once."""

    facts: ModelFacts
    planners: Mapping[Surface, Planner]
    uses_device_thread: bool = True  # False: cheap enough for the planning thread (static embeddings)

    @abc.abstractmethod
    def forward(self, rows: Sequence[Row]) -> list[Outcome]:
        """One outcome for each row, in order. Rows of different readouts may be mixed. An exception fails all rows."""

    @abc.abstractmethod
    def probe_rows(self, chance: Random, length: int) -> list[Row]:
        """One row of about `length` random tokens for each readout, for the probe that compares alone and batched."""

    def forget(self) -> None:  # noqa: B027 - most models keep nothing
        """Drop what earlier passes left behind for later ones, so that the next computes as the first one did, to the last bit.
        On the device thread. Models that keep nothing inherit this."""

    @property
    @abc.abstractmethod
    def memory_bytes(self) -> int:
        """What the weights occupy."""
