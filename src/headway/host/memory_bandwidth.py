"""How fast this machine reads memory: the best of many short sums over an array, with the threads that torch has."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

# Read in one burst by each thread. A tenth of a millisecond is over before the scheduler takes the core away: under a load of 3.4 on
# two cores the best burst reached 33 GB/s, the best pass over 256 MB 9.
_BURST: Final = 2 << 20


def measure_read_bandwidth(nbytes: int, seconds: float = 0.4, clock: Callable[[], float] = time.perf_counter) -> float:
    """Bytes per second over an array of `nbytes`, read in bursts, one behind the other, for `seconds`; imports torch.

    An array far larger than the last cache measures memory, a small one the cache. The best burst counts: other load makes one slower,
    nothing makes it faster than the machine.
    """
    import torch

    array = torch.ones(max(nbytes, 4096) // 4, dtype=torch.float32)
    bursts = [
        view for part in array.split(_BURST * torch.get_num_threads() // 4) for view in (part, part.view(torch.bfloat16))
    ]  # which of the two sums is faster depends on the processor
    array.sum()
    best, until, place = 0.0, clock() + seconds, 0
    while place < len(bursts) or clock() < until:
        burst = bursts[place % len(bursts)]
        started = clock()
        burst.sum()
        best = max(best, burst.nbytes / max(clock() - started, 1e-9))
        place += 1
    return best
