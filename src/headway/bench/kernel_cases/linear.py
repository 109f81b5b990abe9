"""Linear layers: each format of the weight beside torch's packed bfloat16 and beside what torch has of the same format.

Two shapes: a layer of a small model, and one of a large. torch's integer products get inputs that are integers already; the native ones
round bfloat16 inputs in the call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import cycle
from typing import Final

import torch

from headway.bench.kernel_case import Contenders, KernelCase, Run
from headway.host.matrix_speed import MatrixFormat
from headway.kernels.huge_pages import use_huge_pages
from headway.kernels.integer_weight import IntegerForm, IntegerMatrix, IntegerWeight
from headway.kernels.native.linear import pack_linear
from headway.kernels.native.linear_integer import pack_integer_linear, packed_bytes
from headway.kernels.native.tape import Tape
from headway.kernels.torch_linear import pack_linear as pack_for_onednn

_SHAPES: Final = ((576, 1536), (4096, 11008))  # inputs, outputs
_ROWS: Final = (1, 4, 16, 64, 256)
_BEYOND_CACHES: Final = 96 << 20  # bytes of copies that are used in turns
_GROUP: Final = 32  # inputs of a scale of 4 bits


@dataclass(frozen=True, slots=True)
class _Shape:
    rows: int
    inputs: int
    outputs: int

    def __str__(self) -> str:
        return f"[{self.rows},{self.inputs}]x[{self.inputs},{self.outputs}]"


Maker = Callable[[_Shape], Run]  # one call with a weight of its own


@dataclass(frozen=True, slots=True)
class _Format:
    """`nbytes` of the weight as the native kernel holds it; `beside`: what torch has, by name."""

    name: str
    arithmetic: MatrixFormat
    nbytes: Callable[[_Shape], int]
    native: Callable[[Tape, _Shape], Run]
    beside: Mapping[str, Maker]


@lru_cache(maxsize=1)
def _weight(outputs: int, inputs: int, dtype: torch.dtype) -> torch.Tensor:
    """Every copy is packed from the same numbers."""
    return torch.randn(outputs, inputs).to(dtype)


@lru_cache(maxsize=1)
def _codes(rows: int, columns: int, low: int, high: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.randint(low, high, (rows, columns)).to(dtype)


def _inputs(shape: _Shape, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    return torch.randn(shape.rows, shape.inputs).to(dtype)


def _int8(rows: int, columns: int) -> torch.Tensor:
    return _codes(rows, columns, -127, 128, torch.int8)


def _float_linear(dtype: torch.dtype, tape: Tape, shape: _Shape) -> Run:
    return partial(pack_linear(tape, _weight(shape.outputs, shape.inputs, dtype), None), _inputs(shape, dtype))


def _onednn_linear(dtype: torch.dtype, shape: _Shape) -> Run:
    return partial(pack_for_onednn(_weight(shape.outputs, shape.inputs, dtype), None), _inputs(shape, dtype))


def _form(bits: int, shape: _Shape) -> IntegerForm:
    return IntegerForm(8, shape.inputs) if bits == 8 else IntegerForm(4, _GROUP, 8)


def _integer_linear(bits: int, tape: Tape, shape: _Shape) -> Run:
    form = _form(bits, shape)
    outputs, inputs = shape.outputs, shape.inputs
    codes = _int8(outputs, inputs) if bits == 8 else _codes(outputs, inputs, 0, 16, torch.uint8)
    weight = IntegerWeight(form, codes, torch.full((outputs, inputs // form.group), 0.01))
    return partial(pack_integer_linear(tape, IntegerMatrix(form, outputs, inputs, (weight,)), None), _inputs(shape))


def _int_mm(shape: _Shape) -> Run:
    return partial(torch._int_mm, _int8(shape.rows, shape.inputs), _int8(shape.outputs, shape.inputs).clone().t())


def _qlinear(shape: _Shape) -> Run:
    x = torch.randint(0, 256, (shape.rows, shape.inputs), dtype=torch.uint8)
    weight = torch.ops.onednn.qlinear_prepack(_int8(shape.outputs, shape.inputs), None)
    scales, zeros = torch.full((shape.outputs,), 0.01), torch.zeros(shape.outputs, dtype=torch.int64)
    return partial(torch.ops.onednn.qlinear_pointwise, x, 0.01, 128, weight, scales, zeros, None, 1.0, 0, torch.bfloat16, "none", [], "")


def _int4pack(shape: _Shape) -> Run:
    codes = _codes(shape.outputs, shape.inputs, 0, 16, torch.int32)
    packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu(codes, 1)
    scales = torch.full((shape.inputs // _GROUP, shape.outputs, 2), 0.01).bfloat16()
    return partial(torch.ops.aten._weight_int4pack_mm_for_cpu, _inputs(shape), packed, _GROUP, scales)


def _integer_bytes(bits: int, shape: _Shape) -> int:
    return packed_bytes(_form(bits, shape), shape.outputs, shape.inputs) or 0


_PACKED: Final = {"packed bf16": partial(_onednn_linear, torch.bfloat16)}
_FORMATS: Final = (
    _Format("linear bf16", "bf16", lambda s: 2 * s.inputs * s.outputs, partial(_float_linear, torch.bfloat16), _PACKED),
    _Format(
        "linear fp32", "fp32", lambda s: 4 * s.inputs * s.outputs, partial(_float_linear, torch.float32),
        {"packed fp32": partial(_onednn_linear, torch.float32)},
    ),
    _Format(
        "linear int8", "int8", partial(_integer_bytes, 8), partial(_integer_linear, 8),
        {**_PACKED, "_int_mm": _int_mm, "onednn.qlinear": _qlinear},
    ),
    _Format(
        "linear 4 bit", "int8", partial(_integer_bytes, 4), partial(_integer_linear, 4),
        {**_PACKED, "_weight_int4pack_mm": _int4pack},
    ),
)  # fmt: skip


def _cases() -> Iterator[KernelCase]:
    for inputs, outputs in _SHAPES:
        for each in _FORMATS:
            for rows in _ROWS:
                shape = _Shape(rows, inputs, outputs)
                for beside, other in each.beside.items():
                    yield KernelCase(
                        family="linear", name=each.name, shape=str(shape), nbytes=each.nbytes(shape) + 2 * rows * (inputs + outputs),
                        operations=2.0 * rows * inputs * outputs, arithmetic=each.arithmetic, beside=beside,
                        make=partial(_contenders, each, shape, other),
                    )  # fmt: skip


def _contenders(kind: _Format, shape: _Shape, other: Maker, tape: Tape) -> Contenders:
    copies = -(-_BEYOND_CACHES // kind.nbytes(shape))
    native = _in_turns([kind.native(tape, shape) for _ in range(copies)])
    torch_run = _in_turns([other(shape) for _ in range(copies)])
    use_huge_pages()
    return Contenders(native, torch_run)


def _in_turns(runs: list[Run]) -> Run:
    turns = cycle(runs)
    return lambda: next(turns)()


CASES: Final = tuple(_cases())
