"""Variables and durations."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway.errors import ConfigError
from headway.router.deployments.address import Address, address_of
from headway.router.deployments.go_duration import written
from headway.router.deployments.runtime_environment import runtime_environment


@pytest.mark.parametrize(("budget", "threads"), [("1", 1), ("2", 1), ("3", 1), ("7", 3), ("32", 16), ("200", 16)])
def test_threads_are_half_of_the_budget(budget: str, threads: int) -> None:
    assert runtime_environment({"OMP_NUM_THREADS": budget}).threads == threads


def test_variables(tmp_path: Path) -> None:
    found = runtime_environment({
        "OMP_NUM_THREADS": "8", "VLLM_SRUN_COMMAND": "nice -n 5 vllm-srun", "VLLM_SRUN_DIR": str(tmp_path), "VLLM_SRUN_CACHE_DIR": "/cache",
        "VLLM_SRUN_CPU_THREADS": "8", "VLLM_SRUN_READY_TIMEOUT": "1h30m", "VLLM_SRUN_RESULT_CACHE": "0", "VLLM_SRUN_API_KEY": "k",
    })  # fmt: skip
    assert (found.command, found.folder, found.cache) == (("nice", "-n", "5", "vllm-srun"), tmp_path, Path("/cache"))
    assert (found.threads, found.ready_timeout, found.result_cache, found.key) == (8, 5400.0, 0, "k")


def test_defaults(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HEADWAY_CACHE", str(tmp_path))
    found = runtime_environment({})
    assert (found.cache, found.ready_timeout, found.result_cache, found.folder, found.key) == (tmp_path / "model-runtime", 600.0, 4096, None, None)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("VLLM_SRUN_CPU_THREADS", "0"), ("VLLM_SRUN_CPU_THREADS", "9"), ("VLLM_SRUN_CPU_THREADS", "two"), ("VLLM_SRUN_RESULT_CACHE", "-1"),
        ("VLLM_SRUN_READY_TIMEOUT", "10"), ("VLLM_SRUN_READY_TIMEOUT", "0s"), ("VLLM_SRUN_READY_TIMEOUT", "ten minutes"),
    ],
)  # fmt: skip
def test_values_that_cannot_be_used(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=name):
        runtime_environment({"OMP_NUM_THREADS": "8", name: value})


@pytest.mark.parametrize(
    ("seconds", "text"), [(600, "10m0s"), (3600, "1h0m0s"), (90, "1m30s"), (1.5, "1.5s"), (0.25, "250ms"), (3723, "1h2m3s")]
)
def test_durations(seconds: float, text: str) -> None:
    assert written(seconds) == text


def test_addresses() -> None:
    assert address_of("http://h:1/") == Address("http://h:1")
    assert address_of("unix:///run/a.sock").socket == "/run/a.sock"
    assert str(address_of("unix:///run/a.sock")) == "unix:///run/a.sock"
    for wrong in ("ftp://h", "http://", "h:1", "unix://a", "unix:///", "http://u:p@h", "http://h?q", "http://h:99999", "http://h :1"):
        with pytest.raises(ConfigError, match="endpoint must be") as caught:
            address_of(wrong)
        assert "u:p" not in str(caught.value)
