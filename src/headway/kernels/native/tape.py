"""Tape: where calls of native kernels go - run at once, or recorded - and where their results live."""

from __future__ import annotations

import math
import weakref
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import _disable_current_modes

from headway.kernels.native.library import native_library

_ALIGNMENT = 64  # bytes: a register of AVX-512, a cache line
_NO_ROW = -(2**63)


class Tape:
    """Every kernel of one model shares one. `sink` is an `Executor`, which runs a call before it returns, or, while recording, a
    `Program`, which keeps it. One thread uses a tape."""

    def __init__(self, instruction_set: str, threads: int):
        module = native_library().module
        assert module is not None
        self.set = instruction_set
        self.threads = threads
        self._module: Any = module
        self._executor = module.Executor(instruction_set, threads)
        self.sink: Any = self._executor
        self._arena: Arena | None = None
        self._scratch = Scratch(0)
        self._wrong_row = np.full(1, _NO_ROW, np.int64)
        self.wrong_row_address: int = self._wrong_row.ctypes.data

    def refuse_wrong_row(self, rows: int) -> None:
        """Raises IndexError if a kernel was asked for a row that a table of `rows` does not have. A recorded kernel gives NaN for it."""
        if (found := int(self._wrong_row[0])) != _NO_ROW:
            self._wrong_row[0] = _NO_ROW
            raise IndexError(f"row {found} of a table of {rows} rows")

    def empty(self, *shape: int, dtype: torch.dtype) -> torch.Tensor:
        """Uninitialised; while recording, memory that is used again as soon as nobody holds the tensor."""
        return torch.empty(shape, dtype=dtype) if self._arena is None else self._arena.empty(shape, dtype)

    def scratch(self, nbytes: int) -> int:
        """Address, aligned to 64 bytes, of memory that one call may use while it runs. All calls share it: no two run at once."""
        if self._scratch.nbytes < nbytes:
            self._scratch = Scratch(nbytes)
        if self._arena is not None:
            self._arena.scratches.add(self._scratch)
        return self._scratch.address

    @property
    def recording(self) -> bool:
        return self._arena is not None

    @contextmanager
    def record(self, tokens: int, outputs: int, sequences: int) -> Iterator[Recording]:
        """Calls made inside are kept, not run. Sizes are the largest of any later run, and all different: a kernel whose number of
        rows is one of them will run with that of the run instead."""
        program = self._module.Program(self.set, self.threads, tokens, outputs, sequences)
        recording = Recording(program, Arena())
        self.sink, self._arena = program, recording.arena
        try:
            yield recording
        finally:
            self.sink, self._arena = self._executor, None


class Scratch:
    """Memory at `address` that lives as long as this object."""

    __slots__ = ("_buffer", "address", "nbytes")

    def __init__(self, nbytes: int):
        self._buffer = np.empty(nbytes + _ALIGNMENT, np.uint8)
        self.address: int = -(-self._buffer.ctypes.data // _ALIGNMENT) * _ALIGNMENT
        self.nbytes = nbytes


class Recording:
    """A program and the memory that its calls point to."""

    __slots__ = ("arena", "program")

    def __init__(self, program: Any, arena: Arena):
        self.program = program
        self.arena = arena

    def run(self, tokens: int, outputs: int, sequences: int) -> None:
        """Raises ValueError for a size above the recorded one."""
        self.program.run(tokens, outputs, sequences)


class Arena:
    """Memory of a recorded program. A buffer whose tensors are all gone was last read by a call that is already recorded: whatever is
    recorded later may write it."""

    def __init__(self) -> None:
        self._free: dict[int, list[np.ndarray[Any, Any]]] = defaultdict(list)
        self._buffers: list[np.ndarray[Any, Any]] = []
        self.scratches: set[Scratch] = set()  # which recorded calls use

    @property
    def nbytes(self) -> int:
        return sum(buffer.nbytes for buffer in self._buffers) + sum(each.nbytes for each in self.scratches)

    def empty(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        size = -(-math.prod(shape) * dtype.itemsize // _ALIGNMENT) * _ALIGNMENT
        free = self._free[size]
        if free:
            buffer = free.pop()
        else:
            buffer = np.empty(size + _ALIGNMENT, np.uint8)
            self._buffers.append(buffer)
        start = -buffer.ctypes.data % _ALIGNMENT
        # The view, not the buffer, is what torch holds on to: it dies with the last tensor that shares the memory.
        view = buffer[start : start + size]
        weakref.finalize(view, free.append, buffer)
        with _disable_current_modes():  # ViewsOnly, which takes a tensor from numpy for a computed one
            return torch.from_numpy(view).view(dtype)[: math.prod(shape)].view(shape)
