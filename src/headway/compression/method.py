"""The methods of `headway quantize`, as a table: how weights are stored, and what is done to store them well."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

Fit = Literal["nearest", "awq", "gptq"]


@dataclass(frozen=True, slots=True)
class Method:
    """`form` is a word of compressed-tensors. `kind` and `bits` are the numbers that stand for weights, `grouped` says that neighbouring
    inputs share a scale (else all inputs of an output do). `fit` is how the numbers are chosen; all but "nearest" need texts."""

    name: str
    form: str
    kind: Literal["int", "float"]
    bits: int
    grouped: bool
    symmetric: bool
    fit: Fit
    about: str

    @property
    def calibrated(self) -> bool:
        return self.fit != "nearest"


METHODS: Final[Mapping[str, Method]] = {
    each.name: each
    for each in (
        Method("int8", "int-quantized", "int", 8, False, True, "nearest", "8-bit integers, a scale for each output, inputs rounded while it runs"),
        Method("fp8", "float-quantized", "float", 8, False, True, "nearest", "8-bit floats (e4m3), a scale for each output, inputs rounded while it runs"),
        Method("int4-g128", "pack-quantized", "int", 4, True, True, "nearest", "4-bit integers, a scale for each group of inputs, rounded to the nearest"),
        Method("awq", "pack-quantized", "int", 4, True, False, "awq", "the same with zero points, after inputs that matter were scaled up"),
        Method("gptq", "pack-quantized", "int", 4, True, True, "gptq", "the same as int4-g128, each rounding error made up for by the weights that follow"),
    )
}  # fmt: skip
