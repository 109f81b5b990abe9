"""How long the threads of a parallel region wait for work before they sleep.

GNU OpenMP lets them spin for milliseconds. Alone on the machine that is fast; beside any other busy process the spinning
thread burns the time that the one it waits for needs, at each of several hundred barriers of a decode step: we measured
steps of 230 to 2,700 ms instead of 25 (docs/lab.md, 2026-11-29). A bounded spin keeps most of the speed and sleeps then.
"""

from __future__ import annotations

from collections.abc import MutableMapping

SPIN_COUNT = 5000  # iterations of libgomp's wait loop; about 60 us on the machines we measured
_DECIDED_BY_USER = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY", "KMP_BLOCKTIME")


def bound_spinning(environment: MutableMapping[str, str]) -> None:
    """Set GOMP_SPINCOUNT unless the user set one of the variables for it. Has an effect only before torch is imported."""
    if not any(name in environment for name in _DECIDED_BY_USER):
        environment["GOMP_SPINCOUNT"] = str(SPIN_COUNT)
