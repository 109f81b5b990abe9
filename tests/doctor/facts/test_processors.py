"""Threads, CPU limits, and how busy processors are, from whatever says it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headway.doctor.evidence.context import Context
from headway.doctor.evidence.log.scan import read_logs
from headway.doctor.facts import cpu_threads
from headway.doctor.facts.bench_result import SIGHTS as BENCH
from headway.doctor.facts.bench_result import bench_results
from headway.doctor.facts.complaint import complains_of
from headway.doctor.facts.cpu_threads import cpu_limit_of, cpu_list, threads_of, throttled_share
from headway.doctor.facts.launch import Launch
from headway.doctor.facts.processor_use import busy_processes, gpu_use


@pytest.mark.parametrize(
    ("host", "cpus", "by"),
    [
        ({"cpus": 192, "cgroup": {"cpu_max": "400000 100000"}}, 4, "quota"),
        ({"cpus": 8, "cgroup": {"cpu_max": "150000 100000"}, "affinity": "0-3"}, 1.5, "quota"),
        ({"cpus": 64, "affinity": "0-7,16"}, 9, "affinity"),
        ({"cpus": 64, "affinity": 12}, 12, "affinity"),
        ({"cpus": 64, "cgroup": {"cpu_max": "max 100000"}}, 64, "machine"),
        ({"cpus": 64, "cgroup": {"cpu_max": 2.0}}, 2, "quota"),
    ],
)
def test_tightest_limit(host: dict[str, Any], cpus: float, by: str) -> None:
    limit = cpu_limit_of(Context({"host": host}))
    assert limit is not None
    assert (limit.cpus, limit.by) == (cpus, by)
    assert limit.threads == max(1, int(cpus))


def test_unknown_limit_and_throttling() -> None:
    assert cpu_limit_of(Context({})) is None
    assert throttled_share(Context({"host": {"cgroup": {"nr_periods": 200, "nr_throttled": 50}}})) == 0.25
    assert throttled_share(Context({"host": {"cgroup": {"nr_periods": 0, "nr_throttled": 0}}})) is None


def test_cpu_lists() -> None:
    assert cpu_list("0-2, 8") == (0, 1, 2, 8)
    assert cpu_list("all") == ()


@pytest.mark.parametrize(
    ("line", "threads"),
    [
        ("(EngineCore pid=1) INFO 11-29 09:14:20 [cpu_worker.py:88] torch intra-op threads: 192", 192),
        ("system_info: n_threads = 8 (n_threads_batch = 8) / 64 | CPU : AVX2 = 1", 8),
        ("INFO 11-29 09:14:17 [loading.py:67] LLM engine (v1) with config: x, 2 threads (64 CPUs allowed, a quota of 2 CPUs)", 2),
    ],
)
def test_threads_as_printed(tmp_path: Path, line: str, threads: int) -> None:
    (tmp_path / "log.txt").write_text(line + "\n")
    fact = threads_of(read_logs([tmp_path / "log.txt"], cpu_threads.SIGHTS), Context({}), Launch())
    assert fact is not None
    assert fact.value == threads


@pytest.mark.parametrize(
    ("tree", "use"),
    [
        ({"host": {"gpus": [{"util_percent": 12}, {"util_percent": 30}]}}, 0.30),
        ({"metrics": [{"gpu_util_percent": 40}, {"gpu_util_percent": 60}, {"gpu_util_percent": 50}]}, 0.50),
        ({"metrics": [{"DCGM_FI_DEV_GPU_UTIL{gpu=0}": 87}]}, 0.87),
        ({"host": {"probes": ["nvidia-smi: GPU utilization 43 %"]}}, 0.43),
    ],
)
def test_gpu_use(tree: dict[str, Any], use: float) -> None:
    fact = gpu_use(Context(tree))
    assert fact is not None
    assert fact.value == pytest.approx(use)


def test_gpu_memory_is_no_use() -> None:
    assert gpu_use(Context({"metrics": [{"gpu_memory_utilization": 0.9}]})) is None


def test_busy_processes_from_all_sources() -> None:
    context = Context(
        {
            "host": {"processes": [{"command": "VLLM::EngineCore", "cpu_percent": 62.0}], "probes": ["top: APIServer pid 71 at 99.5 % of a core; GPU 40 %"]},
            "metrics": [{"t": 0, "process_cpu_seconds_total": 10.0}, {"t": 10, "process_cpu_seconds_total": 13.0}],
        }
    )
    busy = [(process.name, process.cores) for process in busy_processes(context)]
    assert busy[0] == ("APIServer", pytest.approx(0.995))
    assert busy[1] == ("VLLM::EngineCore", pytest.approx(0.62))
    assert busy[2][1] == pytest.approx(0.3)


def test_benchmark_results_belong_to_their_title(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text(
        "============ Serving Benchmark Result ============\nSuccessful requests:                     200\nMaximum request concurrency:             8\n"
        "Output token throughput (tok/s):         811.10\nPeak output token throughput (tok/s):    900.00\nMean TTFT (ms):                          41.20\n"
        "============ Serving Benchmark Result ============\nSuccessful requests:                     100\n"
    )
    first, second = bench_results(read_logs([tmp_path / "log.txt"], BENCH))
    assert first.values == {"requests": 200, "concurrency": 8, "output_rate": 811.1, "ttft_ms": 41.2}
    assert second.values == {"requests": 100}


def test_complaints_name_a_symptom() -> None:
    assert complains_of(Context({"said": "首字要等 10 秒"}), "first token")
    assert not complains_of(Context({"said": "首字很慢"}), "throughput")
    assert complains_of(Context({"said": "吞吐上不去"}), "throughput")
    assert not complains_of(Context({}), "throughput")
