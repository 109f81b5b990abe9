"""How fast this machine reads memory, with the threads that torch has."""

from __future__ import annotations

from functools import partial
from typing import Final

from headway.host.burst_rate import Clocks, Rate, burst_rate

# Read in one burst by each thread. A tenth of a millisecond is over before the scheduler takes the core away: under a load of 3.4 on
# two cores the best burst reached 33 GB/s, the best pass over 256 MB 9.
_BURST: Final = 2 << 20


def measure_read_bandwidth(nbytes: int, seconds: float = 0.3, clocks: Clocks | None = None) -> Rate:
    """Bytes per second over an array of `nbytes`, read in bursts, one behind the other; imports torch.

    An array far larger than the last cache measures memory, a small one the cache.
    """
    import torch

    threads = torch.get_num_threads()
    array = torch.ones(max(nbytes, 4096) // 4, dtype=torch.float32)
    parts = torch.split(array, _BURST * threads // 4)
    # Which of the two sums is faster depends on the processor. Not one after the other on the same part: that is in the cache by then.
    views = [*parts, *(part.view(torch.bfloat16) for part in parts)]
    array.sum()
    return burst_rate([(partial(torch.sum, view), float(view.nbytes)) for view in views], threads, seconds, clocks)
