"""This machine, and made-up ones: cgroups of both versions."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headway.doctor.collect.host import host_part

_GIB = 2**30


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


BASE = {
    "proc/meminfo": "MemTotal:       33554432 kB\nMemAvailable:   20971520 kB\n",
    "proc/cmdline": "quiet intel_iommu=on\n",
    "proc/1/cgroup": "0::/kubepods.slice/pod1\n",
    "dev/shm/.keep": "",
}


@pytest.fixture(params=[1, 2])
def limited(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """16 GiB and 1.5 CPUs, throttled 40 times of 100, one process killed."""
    if request.param == 2:
        files = {
            "proc/self/cgroup": "0::/pod1\n",
            "proc/self/mountinfo": "30 20 0:25 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n",
            "sys/fs/cgroup/pod1/memory.max": f"{16 * _GIB}\n",
            "sys/fs/cgroup/pod1/memory.current": f"{4 * _GIB}\n",
            "sys/fs/cgroup/pod1/memory.peak": f"{15 * _GIB}\n",
            "sys/fs/cgroup/pod1/memory.events": "low 0\noom 3\noom_kill 1\n",
            "sys/fs/cgroup/pod1/cpu.max": "150000 100000\n",
            "sys/fs/cgroup/pod1/cpu.stat": "usage_usec 9\nnr_periods 100\nnr_throttled 40\n",
        }
    else:
        files = {
            "proc/self/cgroup": "3:memory:/pod1\n2:cpu,cpuacct:/pod1\n",
            "proc/self/mountinfo": "30 20 0:25 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n31 20 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n",
            "sys/fs/cgroup/memory/pod1/memory.limit_in_bytes": f"{16 * _GIB}\n",
            "sys/fs/cgroup/memory/pod1/memory.usage_in_bytes": f"{4 * _GIB}\n",
            "sys/fs/cgroup/memory/pod1/memory.max_usage_in_bytes": f"{15 * _GIB}\n",
            "sys/fs/cgroup/memory/pod1/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n",
            "sys/fs/cgroup/cpu/pod1/cpu.cfs_quota_us": "150000\n",
            "sys/fs/cgroup/cpu/pod1/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/cpu/pod1/cpu.stat": "nr_periods 100\nnr_throttled 40\nthrottled_time 5\n",
        }
    return write(tmp_path, BASE | files)


def test_a_container_with_limits(limited: Path) -> None:
    part = host_part(limited)
    assert part["ram_gib"] == 32.0
    assert part["in_container"] is True
    assert part["cgroup"] == {"memory_max_gib": 16.0, "cpu_max": "150000 100000", "nr_periods": 100, "nr_throttled": 40, "oom_kill": 1, "memory_peak_gib": 15.0}
    assert part["available_gib"] == 12.0
    assert "intel_iommu=on" in part["kernel_cmdline"]


def test_a_machine_without_groups(tmp_path: Path) -> None:
    part = host_part(write(tmp_path, {**BASE, "proc/1/cgroup": "0::/init.scope\n"}))
    assert part["cgroup"] == {}
    assert part["in_container"] is False


def test_this_machine() -> None:
    part = host_part()
    assert part["cpus"] >= part["affinity"] >= 1
    assert any(mount["path"] == "/" for mount in part["mounts"])
    assert any("127.0.0.1" in interface["addresses"] for interface in part["interfaces"])
    assert part["gpus"] == []
    assert len(part["processes"]) <= 12


def test_another_process_has_its_own_affinity() -> None:
    assert host_part(pid=os.getpid())["affinity"] == len(os.sched_getaffinity(0))
