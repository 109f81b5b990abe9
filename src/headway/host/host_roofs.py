"""What this machine can do at most, measured once and kept in a file: reading memory, reading its cache, multiplying matrices."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from headway.host.burst_rate import Rate
from headway.host.cache_levels import last_level_cache_bytes
from headway.host.cpu_budget import cpu_budget
from headway.host.instruction_set import instruction_set
from headway.host.matrix_speed import FORMATS, measure_matrix_speed
from headway.host.memory_bandwidth import measure_read_bandwidth
from headway.host.memory_budget import memory_budget

FILE_NAME: Final = "host-roofs.json"
_LARGEST: Final = 1 << 16
_LEAST_ARRAY: Final = 64 << 20
_MOST_ARRAY: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class HostRoofs:
    """`read_bandwidth` of memory and `cache_bandwidth` of the last cache in bytes per second, `matrix` in operations per second
    by format; `key` says for which machine and how many threads. Not `quiet`: measured beside other load, and estimated upwards.
    """

    key: str
    threads: int
    cache_bytes: int
    read_bandwidth: float
    cache_bandwidth: float
    matrix: Mapping[str, float]
    quiet: bool = True


def host_key() -> str:
    """Figures of another processor, or for another number of threads, are none for this one."""
    return f"{instruction_set().model}|{os.cpu_count()} CPUs|{cpu_budget().threads} threads|cache {last_level_cache_bytes()}"


def measure_host_roofs() -> HostRoofs:
    """Two to six seconds; imports torch and sets its number of threads to the CPU budget.

    Beside other load all cores are never had at once. A figure is then the larger of what was reached and of what one thread reaches
    times the threads: it stays an upper bound, if a loose one.
    """
    import torch

    threads, cache = cpu_budget().threads, last_level_cache_bytes()
    torch.set_num_threads(threads)
    array = min(max(8 * cache, _LEAST_ARRAY), _MOST_ARRAY, max(memory_budget().available // 8, _LEAST_ARRAY))
    quiet = True

    def bounded(measure: Callable[[], Rate]) -> float:
        nonlocal quiet
        found = measure()
        if found.quiet or threads == 1:
            return found.best
        quiet = False
        torch.set_num_threads(1)
        alone = measure()
        torch.set_num_threads(threads)
        return max(found.best, alone.best * threads)

    return HostRoofs(
        host_key(), threads, cache, bounded(partial(measure_read_bandwidth, array)), bounded(partial(measure_read_bandwidth, max(cache // 4, 1 << 20), 0.1)),
        {kind: bounded(partial(measure_matrix_speed, kind)) for kind in FORMATS}, quiet,
    )  # fmt: skip


def stored_host_roofs(folder: Path) -> HostRoofs | None:
    """What was kept in `folder` for this machine, None when nothing usable was."""
    try:
        text = (folder / FILE_NAME).read_bytes()[:_LARGEST]
        found = json.loads(text)
        roofs = HostRoofs(
            str(found["key"]), int(found["threads"]), int(found["cache_bytes"]), _positive(found["read_bandwidth"]),
            _positive(found["cache_bandwidth"]), {kind: _positive(found["matrix"][kind]) for kind in FORMATS}, found["quiet"] is True,
        )  # fmt: skip
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return roofs if roofs.key == host_key() else None


def keep_host_roofs(roofs: HostRoofs, folder: Path) -> HostRoofs:
    """Write them down; of two quiet measurements each figure is the larger one, and a quiet one is not replaced by another. A folder that
    cannot be written to keeps nothing."""
    before = stored_host_roofs(folder)
    if before is not None and before.quiet and not roofs.quiet:
        return before
    if before is not None and before.quiet:
        best = {kind: max(speed, before.matrix[kind]) for kind, speed in roofs.matrix.items()}
        roofs = HostRoofs(
            roofs.key, roofs.threads, roofs.cache_bytes, max(roofs.read_bandwidth, before.read_bandwidth),
            max(roofs.cache_bandwidth, before.cache_bandwidth), best,
        )  # fmt: skip
    try:
        folder.mkdir(parents=True, exist_ok=True)
        part = folder / f"{FILE_NAME}.{os.getpid()}.part"
        part.write_text(json.dumps(asdict(roofs), indent=1), "utf-8")
        part.replace(folder / FILE_NAME)
    except OSError:
        return roofs
    return roofs


def _positive(value: Any) -> float:
    number = float(value)
    if not 0 < number < math.inf:
        raise ValueError(f"{number} is no rate")
    return number
