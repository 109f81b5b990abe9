"""Threads over the CPU quota of a container, with a real control group (version 1 or 2)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.doctor.live.diagnosed import doctor, first, fixes
from tests.doctor.live.load import clients, completion
from tests.e2e.served_model import serve

_V1, _V2 = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")
_PERIOD, _QUOTA = 100_000, 20_000


@contextmanager
def quota_group() -> Iterator[Path]:
    """A group that may use a fifth of a core."""
    top = _V1 if (_V1 / "cpu.cfs_quota_us").exists() or (_V1 / "tasks").exists() else _V2
    group = top / f"headway-test-{os.getpid()}"
    try:
        group.mkdir()
        if top is _V1:
            (group / "cpu.cfs_period_us").write_text(str(_PERIOD))
            (group / "cpu.cfs_quota_us").write_text(str(_QUOTA))
        else:
            (group / "cpu.max").write_text(f"{_QUOTA} {_PERIOD}")
    except OSError as error:
        pytest.fail(f"this test makes a control group, which needs root: {error}")
    try:
        yield group
    finally:
        group.rmdir()


@pytest.mark.long
@pytest.mark.timeout(300)
def test_threads_over_the_quota(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    with quota_group() as group, serve(tmp_path, "--max-model-len", "512") as served:
        (group / "cgroup.procs").write_text(str(served.process.pid))
        with clients(served.url, 1, lambda k: completion(f"request {k}", 8)):
            finding = first(doctor("serve", served.url, "--seconds", "8", "--requests", "0", "--said", "generation is slow"))
    assert finding["rule"] in ("T7", "R20")
    assert "periods" in finding["cause"]
    assert "0.2" in finding["cause"]
    assert "OMP_NUM_THREADS" in fixes(finding)
