"""The batch probe: may rows of different requests share a forward pass of this model?

Rows are computed alone and in one mixed batch in reverse order. What differs by rounding alone may be shared; padding
that leaks into a result, or a mask that is missing, shows as a difference that no rounding explains.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from headway.runtime.loaded_model import LoadedModel
from headway.runtime.row import Row
from headway.runtime.selfcheck.agreement import difference

LENGTHS: Final = (3, 9, 9, 17, 40, 130)
SEED: Final = 20_260_101
TOLERANCES: Final = {"float32": 1e-5}  # of results; labels then agree wherever their margin is wider than twice that
REDUCED_TOLERANCE: Final = 5e-3  # bfloat16, int8


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """`largest` difference between a row alone and in the batch, `allowed` is what still counts as rounding."""

    rows: int
    largest: float
    allowed: float

    @property
    def may_share(self) -> bool:
        return self.largest <= self.allowed


def probe(model: LoadedModel, *, batch_invariant: bool) -> ProbeResult:
    """Compare; on the device thread. With `batch_invariant` only equal bits let rows share a pass."""
    rows = _rows(model)
    allowed = 0.0 if batch_invariant else TOLERANCES.get(model.facts.dtype, REDUCED_TOLERANCE)
    alone = [model.forward([row])[0] for row in rows]
    together = list(reversed(model.forward(list(reversed(rows)))))
    largest = max((difference(a, b) for a, b in zip(alone, together, strict=True)), default=0.0)
    return ProbeResult(len(rows), largest, allowed)


def _rows(model: LoadedModel) -> Sequence[Row]:
    chance = Random(SEED)
    longest = model.facts.limits.get("max_input_tokens", max(LENGTHS))
    return [row for length in LENGTHS for row in model.probe_rows(chance, min(length, longest))]
