"""How fast this machine reads memory: the best of several sums over an array, with the threads that torch has."""

from __future__ import annotations

import time
from collections.abc import Callable


def measure_read_bandwidth(nbytes: int, seconds: float = 0.4, clock: Callable[[], float] = time.perf_counter) -> float:
    """Bytes per second over an array of `nbytes`, read for `seconds` and at least three times; imports torch.

    An array far larger than the last cache measures memory, a small one the cache. The best pass counts: other load makes a pass
    slower, nothing makes it faster than the machine.
    """
    import torch

    array = torch.ones(max(nbytes, 4096) // 4, dtype=torch.float32)
    views = (array, array.view(torch.bfloat16))  # which of the two sums is faster depends on the processor
    best, until, passes = 0.0, clock() + seconds, 0
    while passes < 3 or clock() < until:
        for view in views:
            started = clock()
            view.sum()
            best = max(best, array.nbytes / max(clock() - started, 1e-9))
        passes += 1
    return best
