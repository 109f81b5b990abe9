"""This machine: memory, CPUs, limits, disks, accelerators, interfaces. Linux in full, other systems as far as they tell."""

from __future__ import annotations

import os
import platform
import resource
import shutil
import time
from pathlib import Path
from typing import Any, Final

import psutil

from headway.doctor.collect.gpus import gpus_part
from headway.host.cgroup_folders import cgroup_folders, read_count, read_word
from headway.host.cpu_budget import cpu_budget
from headway.host.instruction_set import instruction_set
from headway.host.memory_budget import memory_budget

_GIB: Final = 2**30
_FLAT: Final = frozenset({"proc", "sysfs", "devpts", "cgroup", "cgroup2", "mqueue", "securityfs", "debugfs", "bpf", "tracefs", "devtmpfs", "squashfs"})
_PROCESSES_AT_MOST: Final = 12


def host_part(root: Path = Path("/"), pid: int | None = None) -> dict[str, Any]:
    """The `host` of a context. `root` is the file system to read /proc and /sys from; `pid`: the process whose limits
    count instead of this one's."""
    process = "self" if pid is None else str(pid)
    cpus = cpu_budget(root, process=process, environment={}, allowed=_affinity(pid))
    memory = memory_budget(root, process)
    isa = instruction_set(root)
    swap = psutil.swap_memory()
    part: dict[str, Any] = {
        "os": f"{platform.system()} {platform.release()}",
        "ram_gib": round(memory.total / _GIB, 2),
        "available_gib": round(memory.available / _GIB, 2),
        "swap_used_gib": round(swap.used / _GIB, 2),
        "cpus": psutil.cpu_count() or 1,
        "affinity": cpus.allowed,
        "cpu_budget": cpus.threads,
        "cpu_model": isa.model,
        "cpu_flags": " ".join(sorted(isa.flags)),
        "in_container": _in_container(root),
        "cgroup": _cgroup(root, process),
        "shm_mib": _shm_mib(root),
        "load_average": round(os.getloadavg()[0], 2),
        "kernel_cmdline": read_word(root / "proc/cmdline") or "",
        "limits": {"nofile": resource.getrlimit(resource.RLIMIT_NOFILE)[0], "nproc": resource.getrlimit(resource.RLIMIT_NPROC)[0]},
        "mounts": _mounts(),
        "interfaces": _interfaces(),
        "listeners": listeners(),
        "processes": _processes(),
    }
    return part | gpus_part(root)


def _in_container(root: Path) -> bool:
    groups = (read_word(root / "proc/1/cgroup") or "").lower()
    return (root / ".dockerenv").exists() or (root / "run/.containerenv").exists() or any(word in groups for word in ("docker", "kubepods", "containerd"))


def _affinity(pid: int | None) -> int | None:
    try:
        return None if pid is None else len(psutil.Process(pid).cpu_affinity() or ())
    except (psutil.Error, AttributeError):
        return None


def _cgroup(root: Path, process: str) -> dict[str, Any]:
    """Limits of all groups above this process, and the counters of its own: both versions."""
    part: dict[str, Any] = {}
    memory = memory_budget(root, process)
    if memory.limited_by != "the machine":
        part["memory_max_gib"] = round(memory.limit / _GIB, 3)
    quota = cpu_budget(root, environment={}, process=process).quota
    if quota is not None:
        part["cpu_max"] = f"{round(quota * 100_000)} 100000"
    for folder in cgroup_folders("cpu", root, process)[:1]:
        part |= {name: value for name, value in _counters(folder.path / "cpu.stat").items() if name in ("nr_periods", "nr_throttled")}
    for folder in cgroup_folders("memory", root, process)[:1]:
        events = _counters(folder.path / ("memory.events" if folder.version == 2 else "memory.oom_control"))
        if "oom_kill" in events:
            part["oom_kill"] = events["oom_kill"]
        peak = read_count(folder.path / ("memory.peak" if folder.version == 2 else "memory.max_usage_in_bytes"))
        if peak:
            part["memory_peak_gib"] = round(peak / _GIB, 3)
    return part


def _counters(path: Path) -> dict[str, int]:
    try:
        pairs = [line.split() for line in path.read_text("ascii", "replace").splitlines()]
    except OSError:
        return {}
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdecimal()}


def _shm_mib(root: Path) -> float | None:
    try:
        return round(shutil.disk_usage(root / "dev/shm").total / 2**20, 1)
    except OSError:
        return None


def _mounts() -> list[dict[str, Any]]:
    mounts: list[dict[str, Any]] = []
    for mount in psutil.disk_partitions(all=True):
        if mount.fstype in _FLAT or mount.mountpoint.startswith(("/proc", "/sys", "/run/", "/etc/")):
            continue
        try:
            free = shutil.disk_usage(mount.mountpoint).free
        except OSError:
            continue
        mounts.append({"path": mount.mountpoint, "type": mount.fstype, "free_gib": round(free / _GIB, 2)})
    return mounts


def _interfaces() -> list[dict[str, Any]]:
    state = psutil.net_if_stats()
    return [
        {"name": name, "addresses": [entry.address for entry in entries if entry.family.name in ("AF_INET", "AF_INET6")], "up": state[name].isup if name in state else None}
        for name, entries in psutil.net_if_addrs().items()
    ]


def listeners() -> list[dict[str, Any]]:
    """TCP sockets that listen: address, port, and where it may be seen, pid, command, age in seconds."""
    found: list[dict[str, Any]] = []
    try:
        connections = psutil.net_connections("tcp")
    except psutil.Error:
        return found
    for connection in connections:
        if connection.status != psutil.CONN_LISTEN or not connection.laddr:
            continue
        entry: dict[str, Any] = {"address": connection.laddr.ip, "port": connection.laddr.port}
        if connection.pid is not None:
            entry["pid"] = connection.pid
            entry |= _owner(connection.pid)
        found.append(entry)
    return sorted(found, key=lambda entry: (entry["port"], entry["address"]))


def _owner(pid: int) -> dict[str, Any]:
    try:
        process = psutil.Process(pid)
        return {"command": " ".join(process.cmdline())[:200], "age_s": round(time.time() - process.create_time())}
    except psutil.Error:
        return {}


def _processes() -> list[dict[str, Any]]:
    """The largest by resident memory."""
    found: list[dict[str, Any]] = []
    for process in psutil.process_iter(["pid", "name", "cmdline", "memory_info", "num_threads"]):
        info = process.info
        if info["memory_info"] is not None:
            found.append(
                {
                    "pid": info["pid"],
                    "name": info["name"],
                    "command": " ".join(info["cmdline"] or [])[:200],
                    "rss_gib": round(info["memory_info"].rss / _GIB, 3),
                    "threads": info["num_threads"],
                }
            )
    return sorted(found, key=lambda entry: -float(entry["rss_gib"]))[:_PROCESSES_AT_MOST]
