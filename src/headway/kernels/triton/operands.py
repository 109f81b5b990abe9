"""Sizes and dtypes of the tiles that matrix units multiply."""

from __future__ import annotations

from typing import Any, Final

import torch
import triton
import triton.language as tl

from headway.kernels.triton.place import interpreted

_SMALLEST: Final = 16  # rows and columns of a tile that is multiplied
# Of a key or value: longer ones are read in smaller tiles, so that all of them fit in 99 KiB of shared memory (capability 8.6 and 8.9).
_SHORT: Final = 256
_LONG: Final = 512
_OPERANDS: Final = {torch.float32: tl.float32, torch.bfloat16: tl.bfloat16, torch.float16: tl.float16}


def padded(count: int, least: int = _SMALLEST) -> int:
    """The smallest power of two that holds `count`, as a side of a tile."""
    return max(least, int(triton.next_power_of_2(count)))


def key_tile(size: int, dtype: torch.dtype) -> int:
    """How many keys of `size` numbers are read at once."""
    nbytes = padded(size) * dtype.itemsize
    return 64 if nbytes <= _SHORT else 32 if nbytes <= _LONG else 16


def query_tile(size: int, dtype: torch.dtype) -> int:
    """Rows of queries of a prefill tile: queries times the heads that share keys."""
    return 64 if padded(size) * dtype.itemsize <= _LONG else 32


def dot_operand(dtype: torch.dtype) -> Any:
    """What tiles of numbers of this dtype are multiplied as; the interpreter has no arithmetic for bfloat16."""
    return tl.float32 if dtype == torch.bfloat16 and interpreted() else _OPERANDS[dtype]
