"""Formats that are made while an unquantized checkpoint is loaded: which numbers each of them can hold.

fp8: float8 e4m3 with one scale for the matrix, largest / 448. int8: a scale for each output, largest / 127. int8_32: one for each 32 inputs
of an output (the inputs of a product are then rounded in groups as small). int4: a scale for each 128 inputs of an output, largest / 7.5,
and numbers from -8 to 7. Where kernels compute with integers, all but fp8 are kept as such; else a matrix is rounded to these numbers and
kept in the dtype of the model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final

import torch

from headway.kernels.integer_weight import IntegerForm, IntegerWeight

_GROUP: Final = 128
_SMALL_GROUP: Final = 32


def _fp8(weight: torch.Tensor) -> torch.Tensor:
    scale = _scale(weight.abs().amax(), 448.0)
    return (weight / scale).clamp(-448.0, 448.0).to(torch.float8_e4m3fn).float() * scale


def _int8(weight: torch.Tensor) -> IntegerWeight:
    return _int8_groups(weight, IntegerForm(8, weight.shape[1]))


def _int8_32(weight: torch.Tensor) -> IntegerWeight:
    return _int8_groups(weight, _int8_32_form(weight.shape[1]))


def _int8_32_form(width: int) -> IntegerForm:
    return IntegerForm(8, math.gcd(_SMALL_GROUP, width))


def _int8_groups(weight: torch.Tensor, form: IntegerForm) -> IntegerWeight:
    groups = weight.reshape(len(weight), -1, form.group)
    scales = _scale(groups.abs().amax(-1), 127.0)
    codes = torch.round(groups / scales[..., None]).clamp(-127.0, 127.0)
    return IntegerWeight(form, codes.to(torch.int8).reshape(weight.shape), scales)


def _int4(weight: torch.Tensor) -> IntegerWeight:
    form = _int4_form(weight.shape[1])
    codes, scales = [], []
    for group in torch.split(weight, _GROUP, -1):
        scale = _scale(group.abs().amax(-1, keepdim=True), 7.5)
        codes.append((torch.round(group / scale).clamp(-8.0, 7.0) + 8.0).to(torch.uint8))
        scales.append(scale.expand(-1, group.shape[1] // form.group))
    return IntegerWeight(form, torch.cat(codes, -1), torch.cat(scales, -1))


def _int4_form(width: int) -> IntegerForm:
    """The last group may be short, and those of a form are all alike: what divides both has the scale of its group."""
    return IntegerForm(4, math.gcd(_GROUP, width), offset=8)


def _scale(largest: torch.Tensor, most: float) -> torch.Tensor:
    """1 for a matrix of zeros."""
    return torch.where(largest > 0, largest / most, 1.0)


_FORMS: Final[Mapping[str, Callable[[int], IntegerForm]]] = {
    "int8": lambda width: IntegerForm(8, width), "int8_32": _int8_32_form, "int4": _int4_form,
}
_INTEGERS: Final[Mapping[str, Callable[[torch.Tensor], IntegerWeight]]] = {"int8": _int8, "int8_32": _int8_32, "int4": _int4}
METHODS: Final = ("fp8", *_INTEGERS)


def online_form(method: str, width: int) -> IntegerForm | None:
    """Of a matrix with `width` inputs; None for floats."""
    return _FORMS[method](width) if method in _FORMS else None


def online_integers(weight: torch.Tensor, method: str) -> IntegerWeight:
    """Rows [out, in] of a matrix in a `method` that has a form."""
    return _INTEGERS[method](weight.float())


def round_weight(weight: torch.Tensor, method: str) -> None:
    """Replace a matrix [out, in], in its own dtype, by what `method` keeps of it."""
    weight.copy_(online_integers(weight, method).dequantized() if method in _INTEGERS else _fp8(weight.float()))
