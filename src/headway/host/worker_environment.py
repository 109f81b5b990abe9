"""What the allocator and the numeric libraries of a worker process are told before they are imported."""

from __future__ import annotations

import platform
from collections.abc import MutableMapping
from typing import Final

_X86: Final = frozenset({"x86_64", "AMD64", "i686"})


def prepare_worker(environment: MutableMapping[str, str], machine: str | None = None) -> None:
    """Set what the user has not set. Has an effect only before torch and numpy are imported.

    torch puts tensors of 2 MiB and more on huge pages when it is told so. One thread for OpenBLAS: torch computes with its
    own threads, and a second team on the same cores makes both slower. Caches of compiled products and the spinning of
    OpenMP's threads are bounded for every process of ours (`primitive_cache`, `openmp`).
    """
    environment.setdefault("THP_MEM_ALLOC_ENABLE", "1")
    if (machine or platform.machine()) in _X86:
        environment.setdefault("OPENBLAS_NUM_THREADS", "1")
