"""Timing on a machine that others use too: how much CPU they took, and runs again when it was too much. Linux only."""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import psutil

_TICKS = os.sysconf("SC_CLK_TCK")
CORES = os.cpu_count() or 1


@dataclass(slots=True)
class Readings:
    """All readings of one contender; `disturbed` were taken although other processes were too busy in every try."""

    name: str
    values: list[float] = field(default_factory=list)
    foreign: list[float] = field(default_factory=list)  # share of all cores, of the reading that was kept
    disturbed: int = 0
    thrown_away: int = 0

    @property
    def median(self) -> float:
        return statistics.median(self.values)


def busy_seconds() -> float:
    """CPU seconds that all processes of the machine have used since boot (user, nice, system, irq, steal)."""
    parts = [int(x) for x in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return (sum(parts) - parts[3] - parts[4]) / _TICKS


def own_seconds(others: Iterable[int] = ()) -> float:
    """CPU seconds of this process, its children (also ended ones) and the process trees of `others`."""
    mine = psutil.Process()
    total = sum(os.times()[:4])
    for process in [*mine.children(recursive=True), *_trees(others)]:
        with contextlib.suppress(psutil.Error):
            times = process.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total


def _trees(pids: Iterable[int]) -> list[psutil.Process]:
    found: list[psutil.Process] = []
    for pid in pids:
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(pid)
            found += [process, *process.children(recursive=True)]
    return found


def tree_rss(pid: int) -> int:
    """Resident bytes of a process and its descendants; shared pages count more than once."""
    total = 0
    for process in _trees([pid]):
        with contextlib.suppress(psutil.Error):
            total += process.memory_info().rss
    return total


def listener(port: int) -> int | None:
    """The process that listens on a local port, None when it is not here or not ours to see."""
    try:
        connections = psutil.net_connections(kind="tcp")
    except psutil.Error:
        return None
    return next((c.pid for c in connections if c.status == psutil.CONN_LISTEN and c.laddr.port == port and c.pid), None)


def measured(work: Callable[[], float], others: Iterable[int]) -> tuple[float, float]:
    """The value of `work` and the share of all cores that foreign processes took meanwhile."""
    others = list(others)
    busy, own, start = busy_seconds(), own_seconds(others), time.monotonic()
    value = work()
    wall = time.monotonic() - start
    foreign = (busy_seconds() - busy) - (own_seconds(others) - own)
    return value, max(0.0, foreign) / wall / CORES


def wait_until_calm(limit: float = 60.0) -> None:
    """Wait until the cores were nearly idle for a second, at most `limit` seconds."""
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        before = busy_seconds()
        time.sleep(1)
        if busy_seconds() - before < 0.15 * CORES:
            return


def alternate(
    contenders: Sequence[tuple[str, Callable[[int], float]]],
    runs: int,
    *,
    others: Iterable[int] = (),
    foreign_limit: float = 0.03,
    tries: int = 4,
    calm: float = 60.0,
    say: Callable[[str], None] = lambda line: None,
) -> list[Readings]:
    """`runs` readings of each contender, one after the other in turn.

    A contender is called with the number of the reading: the same for all contenders in a run, another one when a
    reading is repeated, so that a cache filled by the first try does not serve the second.

    A reading during which other processes took more than `foreign_limit` of the cores is thrown away and taken again;
    after `tries` the least disturbed one is kept and counted as disturbed.
    """
    others = list(others)
    readings = [Readings(name) for name, _ in contenders]
    for run in range(runs):
        for reading, (name, work) in zip(readings, contenders, strict=True):
            taken: list[tuple[float, float]] = []
            while len(taken) < tries:
                wait_until_calm(calm)
                value, foreign = measured(partial(work, run + runs * len(taken)), others)
                taken.append((foreign, value))
                say(f"  {name}, run {run + 1}: {value:.4g} (foreign CPU {foreign:.1%})")
                if foreign <= foreign_limit:
                    break
            foreign, value = min(taken)
            reading.values.append(value)
            reading.foreign.append(foreign)
            reading.disturbed += foreign > foreign_limit
            reading.thrown_away += len(taken) - 1
    return readings


def add_reading_options(parser: argparse.ArgumentParser) -> None:
    """Flags that benchmarks have in common: how often and how undisturbed they measure."""
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--foreign-limit", type=float, default=3.0, help="percent of the cores that others may take in a reading")
    parser.add_argument("--tries", type=int, default=3, help="readings that may be thrown away because of them")
    parser.add_argument("--calm", type=float, default=10.0, help="seconds to wait at most for quiet cores before a reading")
    parser.add_argument("--strict", action="store_true", help="exit with 1 when a goal is missed")
    parser.add_argument("--verbose", action="store_true", help="print every reading")


def reading_options(args: argparse.Namespace) -> dict[str, Any]:
    """Arguments of `alternate` from those flags."""
    say = print if args.verbose else lambda line: None
    return {"foreign_limit": args.foreign_limit / 100, "tries": args.tries, "calm": args.calm, "say": say}
