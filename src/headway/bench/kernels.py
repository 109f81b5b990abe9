"""`headway bench kernels`: every native kernel beside torch and beside the roofline, all measured in the same run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from headway.bench.kernel_case import KernelCase, Run
from headway.host.host_roofs import HostRoofs
from headway.kernels.native.tape import Tape

_BURST: Final = 0.004  # seconds of one turn of a contender: far longer than a call, short enough to take turns often


@dataclass(frozen=True, slots=True)
class KernelTime:
    """Seconds of a call, medians. `floor`: what reading its bytes and doing its arithmetic take at least on this machine, the longer of
    the two. `bound`: which that is."""

    case: KernelCase
    native: float
    torch: float | None
    floor: float
    bound: str

    @property
    def share(self) -> float:
        """Of the roofline; 1 = as fast as the machine can be."""
        return self.floor / self.native

    @property
    def gain(self) -> float | None:
        """How many times as fast as torch."""
        return None if self.torch is None else self.torch / self.native


def measure_kernels(cases: Sequence[KernelCase], tape: Tape, roofs: HostRoofs, rounds: int) -> Iterator[KernelTime]:
    """Native and torch take turns, `rounds` each."""
    for case in cases:
        contenders = case.make(tape)
        native = _burst_of(contenders.native)
        torch = None if contenders.torch is None else _burst_of(contenders.torch)
        natives, others = [], []
        for _ in range(rounds):
            natives.append(native())
            if torch is not None:
                others.append(torch())
        floor, bound = _floor(case, roofs)
        yield KernelTime(case, median(natives), median(others) if others else None, floor, bound)


def _burst_of(run: Run) -> Callable[[], float]:
    """A function that calls `run` for a while and returns seconds per call."""
    run()
    started = time.perf_counter()
    run()
    count = max(1, round(_BURST / max(time.perf_counter() - started, 1e-7)))

    def burst() -> float:
        began = time.perf_counter()
        for _ in range(count):
            run()
        return (time.perf_counter() - began) / count

    return burst


def _floor(case: KernelCase, roofs: HostRoofs) -> tuple[float, str]:
    reading = case.nbytes / (roofs.read_bandwidth if case.from_memory else roofs.cache_bandwidth)
    computing = case.operations / roofs.matrix[case.arithmetic]
    return (reading, "memory" if case.from_memory else "cache") if reading >= computing else (computing, case.arithmetic)
