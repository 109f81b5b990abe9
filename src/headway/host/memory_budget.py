"""How much memory this process may have and how much is left, in bytes: the machine's, limited by cgroups."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from headway.host.cgroup_folders import CgroupFolder, cgroup_folders, read_count

# Version 1 writes "no limit" as the largest multiple of a page; anything near it is no limit.
_UNLIMITED = 1 << 60


@dataclass(frozen=True, slots=True)
class MemoryBudget:
    """`total` of the machine; `limit` = total or a smaller cgroup limit; `available` = what can still be had without
    swapping; `limited_by` names what sets the limit."""

    total: int
    limit: int
    available: int
    limited_by: str


def memory_budget(root: Path = Path("/"), process: str = "self") -> MemoryBudget:
    """Read /proc/meminfo and every cgroup above this process (or another, by its id). Page cache that can be dropped counts as available."""
    machine = _meminfo(root)
    total = machine.get("MemTotal", 0)
    limit, available, limited_by = total, machine.get("MemAvailable", machine.get("MemFree", total)), "the machine"
    for folder in cgroup_folders("memory", root, process):
        group_limit = _limit(folder)
        if group_limit is None:
            continue
        if total == 0 or group_limit < limit:
            limit, limited_by = group_limit, f"cgroup v{folder.version} {folder.path}"
        left = max(0, group_limit - _unreclaimable(folder))
        available = left if total == 0 else min(available, left)
    return MemoryBudget(total, limit, min(available, limit), limited_by)


def process_rss(root: Path = Path("/")) -> int:
    """Resident bytes of this process (VmRSS of /proc/self/status), 0 when unknown."""
    return _kilobyte_lines(root / "proc/self/status").get("VmRSS", 0)


def _limit(folder: CgroupFolder) -> int | None:
    name = "memory.max" if folder.version == 2 else "memory.limit_in_bytes"
    limit = read_count(folder.path / name)
    return None if limit is None or limit >= _UNLIMITED else limit


def _unreclaimable(folder: CgroupFolder) -> int:
    """Usage of the group less its inactive file pages, which the kernel drops first (what `docker stats` shows, too)."""
    usage_name, inactive_name = (
        ("memory.current", "inactive_file") if folder.version == 2 else ("memory.usage_in_bytes", "total_inactive_file")
    )
    usage = read_count(folder.path / usage_name) or 0
    try:
        statistics = (folder.path / "memory.stat").read_text("ascii", "replace").splitlines()
    except OSError:
        statistics = []
    for line in statistics:
        name, _, value = line.partition(" ")
        if name == inactive_name and value.strip().isdecimal():
            return max(0, usage - int(value))
    return usage


def _meminfo(root: Path) -> dict[str, int]:
    return _kilobyte_lines(root / "proc/meminfo")


def _kilobyte_lines(path: Path) -> dict[str, int]:
    """Lines of the form "Name:  123 kB", in bytes."""
    values: dict[str, int] = {}
    try:
        lines = path.read_text("ascii", "replace").splitlines()
    except OSError:
        return values
    for line in lines:
        name, _, rest = line.partition(":")
        words = rest.split()
        if len(words) == 2 and words[0].isdecimal() and words[1] == "kB":
            values[name] = int(words[0]) * 1024
    return values
