"""Norms, gates, rotation and embedding at the sizes of a small model: one token, a batch of 32, a prompt of 512.

At one token a call is mostly the way from Python; in a recorded program it is not there. Activations are in the last cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

import torch

from headway.bench.kernel_case import Contenders, KernelCase
from headway.kernels.interface import Activation
from headway.kernels.native import pointwise
from headway.kernels.native.tape import Tape
from headway.kernels.torch_backend import TORCH

_ROWS: Final = (1, 32, 512)
_WIDTH: Final = 576
_INNER: Final = 1536
_HEADS: Final = (9, 3, 64)  # of queries, of keys, their size
_VOCABULARY: Final = 49_152
_BYTES: Final = 2  # of bfloat16

Make = Callable[[int, Tape], Contenders]


@dataclass(frozen=True, slots=True)
class _Kernel:
    """`nbytes` and `operations` of a row."""

    name: str
    beside: str
    columns: int
    nbytes: float
    operations: float
    make: Make


def _x(rows: int, *sizes: int) -> torch.Tensor:
    return torch.randn(rows, *sizes).to(torch.bfloat16)


def _rms_norm(rows: int, tape: Tape) -> Contenders:
    x, weight = _x(rows, _WIDTH), _x(_WIDTH)
    return Contenders(partial(pointwise.rms_norm, tape, x, weight, 1e-5), partial(TORCH.rms_norm, x, weight, 1e-5))


def _layer_norm(rows: int, tape: Tape) -> Contenders:
    x, weight = _x(rows, _WIDTH), _x(_WIDTH)
    return Contenders(partial(pointwise.layer_norm, tape, x, weight, weight, 1e-5), partial(TORCH.layer_norm, x, weight, weight, 1e-5))


def _gate(activation: Activation, torch_gate: Callable[[torch.Tensor], torch.Tensor], rows: int, tape: Tape) -> Contenders:
    x = _x(rows, 2 * _INNER)
    return Contenders(partial(pointwise.gate, tape, activation, x), partial(torch_gate, x))


def _rotate(rows: int, tape: Tape) -> Contenders:
    queries, keys, size = _HEADS
    x = _x(rows, queries + 2 * keys, size)[:, : queries + keys]
    cos, sin = torch.ones(rows, 1, size).bfloat16(), torch.zeros(rows, 1, size).bfloat16()  # in place, again and again: nothing may grow
    return Contenders(partial(pointwise.rotate, tape, x, cos, sin), partial(TORCH.rotate, x, cos, sin))


def _rotary_tables(rows: int, tape: Tape) -> Contenders:
    positions, frequencies = torch.arange(rows), torch.rand(_HEADS[2] // 2)
    rest = (positions, frequencies, 1.0, torch.bfloat16)
    return Contenders(partial(pointwise.rotary_tables, tape, *rest), partial(TORCH.rotary_tables, *rest))


def _embed(rows: int, tape: Tape) -> Contenders:
    table, ids = _x(_VOCABULARY, _WIDTH), torch.randint(0, _VOCABULARY, (rows,))
    return Contenders(partial(pointwise.embed, tape, table, ids, 1.0), partial(TORCH.embed, table, ids, 1.0))


_TURNING: Final = (_HEADS[0] + _HEADS[1]) * _HEADS[2]
# Operations: what the formula has, an exponential counted as 10.
_KERNELS: Final = (
    _Kernel("rms_norm", "F.rms_norm", _WIDTH, 2 * _WIDTH * _BYTES, 4 * _WIDTH, _rms_norm),
    _Kernel("layer_norm", "F.layer_norm", _WIDTH, 2 * _WIDTH * _BYTES, 7 * _WIDTH, _layer_norm),
    _Kernel("silu_gate", "F.silu, mul", _INNER, 3 * _INNER * _BYTES, 14 * _INNER, partial(_gate, "silu", TORCH.silu_gate)),
    _Kernel("gelu_gate", "F.gelu, mul", _INNER, 3 * _INNER * _BYTES, 40 * _INNER, partial(_gate, "gelu", TORCH.gelu_gate)),
    _Kernel("rotate", "roll, mul, addcmul", _TURNING, 2 * _TURNING * _BYTES, 3 * _TURNING, _rotate),
    _Kernel("rotary_tables", "cos, sin, cat", _HEADS[2], 2 * _HEADS[2] * _BYTES, 30 * _HEADS[2], _rotary_tables),
    _Kernel("embed", "F.embedding", _WIDTH, 2 * _WIDTH * _BYTES, 0, _embed),
)


def _cases() -> Iterator[KernelCase]:
    for kernel in _KERNELS:
        for rows in _ROWS:
            yield KernelCase(
                family="pointwise", name=kernel.name, shape=f"[{rows},{kernel.columns}]", nbytes=rows * kernel.nbytes,
                operations=rows * kernel.operations, arithmetic="fp32", beside=kernel.beside,
                make=partial(kernel.make, rows), from_memory=False,
            )  # fmt: skip


CASES: Final = tuple(_cases())
