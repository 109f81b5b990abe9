from __future__ import annotations

import os
from pathlib import Path

import pytest

from headway.host.cpu_budget import cpu_budget
from tests.host.machine_tree import v1, v2, write


@pytest.mark.parametrize(
    ("limit", "quota", "threads"),
    [("400000 100000", 4.0, 4), ("250000 100000", 2.5, 2), ("50000 100000", 0.5, 1), ("max 100000", None, 8), ("1600000 100000", 16.0, 8),
     ("garbage", None, 8), ("100000 0", None, 8), ("", None, 8)],
)  # fmt: skip
def test_quota_of_cgroup_v2(tmp_path: Path, limit: str, quota: float | None, threads: int) -> None:
    budget = cpu_budget(v2(tmp_path, "/a/b", {"a/b/cpu.max": limit}), allowed=8, environment={})
    assert (budget.allowed, budget.quota, budget.threads) == (8, quota, threads)


def test_the_smallest_quota_of_nested_groups_holds(tmp_path: Path) -> None:
    files = {"a/cpu.max": "300000 100000", "a/b/cpu.max": "max 100000", "a/b/c/cpu.max": "600000 100000"}
    assert cpu_budget(v2(tmp_path, "/a/b/c", files), allowed=8, environment={}).threads == 3


@pytest.mark.parametrize(("quota", "threads"), [("200000", 2), ("-1", 8), ("0", 8)])
def test_quota_of_cgroup_v1(tmp_path: Path, quota: str, threads: int) -> None:
    files = {"docker/x/cpu.cfs_quota_us": quota, "docker/x/cpu.cfs_period_us": "100000"}
    assert cpu_budget(v1(tmp_path, "cpu", "/docker/x", files), allowed=8, environment={}).threads == threads


def test_a_container_whose_group_path_is_the_mounted_root(tmp_path: Path) -> None:
    """Without a cgroup namespace /proc/self/cgroup has the host's path while the mount shows only the own group."""
    files = {"cpu.cfs_quota_us": "300000", "cpu.cfs_period_us": "100000"}
    assert cpu_budget(v1(tmp_path, "cpu", "/docker/x", files, visible_root="/docker/x"), allowed=8, environment={}).threads == 3


def test_a_group_inside_a_container_is_found_below_the_mounted_root(tmp_path: Path) -> None:
    files = {"sub/cpu.cfs_quota_us": "200000", "sub/cpu.cfs_period_us": "100000"}
    assert cpu_budget(v1(tmp_path, "cpu", "/docker/x/sub", files, visible_root="/docker/x"), allowed=8, environment={}).threads == 2


def test_a_group_outside_of_what_is_mounted_falls_back_to_the_mount(tmp_path: Path) -> None:
    for group in ("/elsewhere/y", "/../../y"):
        files = {"cpu.cfs_quota_us": "100000", "cpu.cfs_period_us": "100000"}
        assert cpu_budget(v1(tmp_path / group.replace("/", "_"), "cpu", group, files), allowed=8, environment={}).threads == 1


def test_without_cgroups_affinity_decides(tmp_path: Path) -> None:
    assert cpu_budget(tmp_path, allowed=6, environment={}).threads == 6
    assert (
        cpu_budget(
            write(tmp_path, {"proc/self/cgroup": "nonsense\n::\n", "proc/self/mountinfo": "x - cgroup2\n"}), allowed=6, environment={}
        ).threads
        == 6
    )
    assert cpu_budget(tmp_path, environment={}).allowed == len(os.sched_getaffinity(0))


def test_text_names_the_numbers(tmp_path: Path) -> None:
    assert (
        str(cpu_budget(v2(tmp_path, "/", {"cpu.max": "150000 100000"}), allowed=4, environment={}))
        == "1 threads (4 CPUs allowed, a quota of 1.5 CPUs)"
    )


def test_this_machine_has_a_budget() -> None:
    budget = cpu_budget(environment={})
    assert 1 <= budget.threads <= budget.allowed


@pytest.mark.parametrize(("asked", "threads"), [("3", 3), ("12", 12), ("0", 6), ("many", 6), ("", 6)])
def test_omp_num_threads_is_what_its_user_wants(tmp_path: Path, asked: str, threads: int) -> None:
    assert cpu_budget(tmp_path, allowed=6, environment={"OMP_NUM_THREADS": asked}).threads == threads
