"""Quantization: formats, kernels, quality."""

from __future__ import annotations

from typing import Final

from headway.doctor.rules.quantization import (
    garbage,
    hardware,
    method_choice,
    missing_parts,
    quality,
    speed,
    split_weights,
    tensors_within,
)
from headway.doctor.rules.rule import Rule

_FILES: Final = (method_choice, hardware, missing_parts, garbage, split_weights, speed, quality, tensors_within)
RULES: Final[tuple[Rule, ...]] = tuple(sorted((rule for file in _FILES for rule in file.RULES), key=lambda rule: int(rule.id[1:])))
