"""How many threads this process should use: the CPUs it may run on, limited by the quota of its cgroups."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from headway.host.cgroup_folders import CgroupFolder, cgroup_folders, read_count, read_word


@dataclass(frozen=True, slots=True)
class CpuBudget:
    """`allowed` CPUs by affinity, `quota` in CPUs (None = unlimited), `threads` to use (at least 1)."""

    allowed: int
    quota: float | None
    threads: int

    def __str__(self) -> str:
        quota = "no quota" if self.quota is None else f"a quota of {self.quota:g} CPUs"
        return f"{self.threads} threads ({self.allowed} CPUs allowed, {quota})"


def cpu_budget(
    root: Path = Path("/"), *, allowed: int | None = None, environment: Mapping[str, str] = os.environ, process: str = "self"
) -> CpuBudget:
    """floor(min(allowed, quota)), at least 1; OMP_NUM_THREADS, when set to a number, is what its user wants instead.

    `allowed` defaults to the affinity of this process. `process`: whose cgroups count, a process id or "self".
    """
    if allowed is None:
        allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quotas = [quota for folder in cgroup_folders("cpu", root, process) if (quota := _quota(folder)) is not None]
    quota = min(quotas, default=None)
    threads = max(1, math.floor(allowed if quota is None else min(allowed, quota)))
    asked = environment.get("OMP_NUM_THREADS", "")
    if asked.isdecimal() and int(asked) > 0:
        threads = int(asked)
    return CpuBudget(allowed, quota, threads)


def _quota(folder: CgroupFolder) -> float | None:
    """CPUs: microseconds of CPU time per period over the length of the period."""
    if folder.version == 2:
        time, _, period = (read_word(folder.path / "cpu.max") or "").partition(" ")
        if not time.isdecimal() or not period.isdecimal() or int(period) == 0:
            return None
        return int(time) / int(period)
    quota, length = read_count(folder.path / "cpu.cfs_quota_us"), read_count(folder.path / "cpu.cfs_period_us")
    return quota / length if quota and length else None
