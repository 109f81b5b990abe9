"""KernelCase: one kernel at one shape, beside what torch has for it, and what the machine allows at most."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headway.host.matrix_speed import MatrixFormat
from headway.kernels.native.tape import Tape

Run = Callable[[], object]  # one call; successive calls use successive copies of what must come from memory


@dataclass(frozen=True, slots=True)
class Contenders:
    """`native` and `torch` compute the same; `torch` None where it has nothing of the kind."""

    native: Run
    torch: Run | None


@dataclass(frozen=True, slots=True)
class KernelCase:
    """`nbytes` that one call has to read or write, from memory when `from_memory`, else from the last cache; `operations` (a product and
    a sum are two) in the arithmetic of `arithmetic`. What torch runs is said by `beside`."""

    family: str
    name: str
    shape: str
    nbytes: float
    operations: float
    arithmetic: MatrixFormat
    beside: str
    make: Callable[[Tape], Contenders]
    from_memory: bool = True
