"""What the machine can do at most, as a part of a context."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway.doctor.collect.measured import file_read_rate, measured_part


def test_measures_become_members_of_the_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWAY_CACHE", str(tmp_path))
    (tmp_path / "model.safetensors").write_bytes(b"x" * (3 << 20))
    (tmp_path / "config.json").write_text("{}")
    host = measured_part(tmp_path)["host"]
    assert 0.5 < host["memory_bandwidth_gb_s"] < 5000
    assert host["matrix_tflops"]
    assert all(rate > 0 for rate in host["matrix_tflops"].values())
    assert host["io"]["path"].endswith("model.safetensors")
    assert host["io"]["read_mb_s"] > 0


def test_reading_reads_the_whole_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rate is bytes over seconds: with a clock that takes one second in all it is the size."""
    path = tmp_path / "file"
    path.write_bytes(b"x" * 100_000)
    ticks = iter([0.0, 0.5, 0.5, 1.0])
    monkeypatch.setattr("headway.doctor.collect.measured.time.perf_counter", lambda: next(ticks))
    assert file_read_rate(path) == 100_000
