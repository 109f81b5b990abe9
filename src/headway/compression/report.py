"""What a run tells at its end."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Report:
    """`layers`: records of LayerError fields with `layer`, the number of it. `matrix_bits` is bits per weight of the matrices that were compressed,
    scales included; `bits` that of the whole model. `bytes_dense`: of all
    weights in `dtype`, that of what stays dense. `calibration` None = the method needs no texts."""

    model: str
    method: str
    output: Path
    group_size: int | None
    dtype: str
    bytes_before: int
    bytes_dense: int
    bytes_after: int
    bits: float
    matrix_bits: float
    calibration: dict[str, Any] | None
    layers: tuple[dict[str, Any], ...]
    notes: tuple[str, ...]
    resumed_at: int
    seconds: float

    @property
    def commands(self) -> tuple[str, str]:
        """To go on with."""
        return f"headway serve {self.output}", f"headway eval {self.output} --against {self.model}"

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "output": str(self.output), "layers": list(self.layers), "notes": list(self.notes), "commands": list(self.commands)}
