from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from headway.host.memory_budget import memory_budget, process_rss
from tests.host.machine_tree import v1, v2, write

MIB = 1 << 20
MEMINFO = (
    "MemTotal:       1048576 kB\nMemFree:         262144 kB\nMemAvailable:    524288 kB\nHugePages_Total:       0\n"
)


def test_machine_alone(tmp_path: Path) -> None:
    budget = memory_budget(write(tmp_path, {"proc/meminfo": MEMINFO}))
    assert (budget.total, budget.limit, budget.available, budget.limited_by) == (
        1024 * MIB,
        1024 * MIB,
        512 * MIB,
        "the machine",
    )


def test_old_kernels_without_mem_available(tmp_path: Path) -> None:
    assert (
        memory_budget(write(tmp_path, {"proc/meminfo": "MemTotal: 1024 kB\nMemFree: 512 kB\n"})).available == 512 * 1024
    )


def test_cgroup_v2_limit_and_reclaimable_cache(tmp_path: Path) -> None:
    files = {
        "a/memory.max": f"{300 * MIB}\n",
        "a/memory.current": f"{200 * MIB}\n",
        "a/memory.stat": f"anon 1\ninactive_file {150 * MIB}\n",
    }
    budget = memory_budget(write(v2(tmp_path, "/a", files), {"proc/meminfo": MEMINFO}))
    assert (budget.limit, budget.available) == (300 * MIB, 250 * MIB)
    assert budget.limited_by.startswith("cgroup v2")


def test_the_tightest_of_nested_groups_holds_for_each_number(tmp_path: Path) -> None:
    files = {
        "a/memory.max": str(400 * MIB), "a/memory.current": str(390 * MIB),
        "a/b/memory.max": str(200 * MIB), "a/b/memory.current": str(50 * MIB),
    }  # fmt: skip
    budget = memory_budget(write(v2(tmp_path, "/a/b", files), {"proc/meminfo": MEMINFO}))
    assert (budget.limit, budget.available) == (200 * MIB, 10 * MIB)


@pytest.mark.parametrize("word", ["max", "9223372036854771712", "garbage", ""])
def test_no_limit(tmp_path: Path, word: str) -> None:
    budget = memory_budget(write(v2(tmp_path, "/a", {"a/memory.max": word}), {"proc/meminfo": MEMINFO}))
    assert (budget.limit, budget.available) == (1024 * MIB, 512 * MIB)


def test_a_limit_above_the_machine_changes_nothing_but_its_usage_counts(tmp_path: Path) -> None:
    files = {"a/memory.max": str(2048 * MIB), "a/memory.current": str(1900 * MIB)}
    budget = memory_budget(write(v2(tmp_path, "/a", files), {"proc/meminfo": MEMINFO}))
    assert (budget.limit, budget.available) == (1024 * MIB, 148 * MIB)


def test_cgroup_v1(tmp_path: Path) -> None:
    files = {
        "g/memory.limit_in_bytes": str(256 * MIB), "g/memory.usage_in_bytes": str(300 * MIB), "g/memory.stat": f"total_inactive_file {100 * MIB}\n",
        "memory.limit_in_bytes": "9223372036854771712",
    }  # fmt: skip
    budget = memory_budget(write(v1(tmp_path, "memory", "/g", files), {"proc/meminfo": MEMINFO}))
    assert (budget.limit, budget.available) == (256 * MIB, 56 * MIB)
    assert budget.limited_by.startswith("cgroup v1")


def test_without_meminfo_the_group_decides(tmp_path: Path) -> None:
    budget = memory_budget(v2(tmp_path, "/a", {"a/memory.max": str(64 * MIB), "a/memory.current": str(MIB)}))
    assert (budget.limit, budget.available) == (64 * MIB, 63 * MIB)


def test_this_process() -> None:
    ours, theirs = process_rss(), psutil.Process().memory_info().rss
    assert abs(ours - theirs) < 64 * MIB
    assert memory_budget().total == psutil.virtual_memory().total


def test_rss_of_a_tree_without_status(tmp_path: Path) -> None:
    assert process_rss(tmp_path) == 0
