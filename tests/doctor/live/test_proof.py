"""`--apply-check`: after a fix the doctor looks again and says fixed, not fixed or other cause."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.doctor.live.diagnosed import doctor, first
from tests.doctor.live.load import clients, completion
from tests.e2e.tiny_server import tiny_server

_LOOK = ("--seconds", "4", "--requests", "0")


@pytest.mark.long
def test_before_and_after_a_fix(tmp_path: Path) -> None:
    """Twelve clients and a server that takes two at a time; then one that takes more, then one that wants a key."""
    kept = tmp_path / "before.json"
    with tiny_server(tmp_path, "--max-num-seqs", "2") as served, clients(served.url, 12, lambda k: completion(f"request {k}", 100)):
        assert first(doctor("serve", served.url, *_LOOK, "--save", str(kept)))["rule"] in ("T1", "F1")
        same = doctor("serve", served.url, *_LOOK, "--apply-check", str(kept))["apply_check"]
    assert same["verdict"] == "not fixed"
    with tiny_server(tmp_path, "--max-num-seqs", "64") as served, clients(served.url, 12, lambda k: completion(f"request {k}", 100)):
        better = doctor("serve", served.url, *_LOOK, "--apply-check", str(kept))["apply_check"]
    assert better["verdict"] == "fixed"
    assert better["before"]["waiting"] > 5
    assert better["after"]["waiting"] < 1
    assert better["after"]["generation_tokens_per_s"] > 0
    with tiny_server(tmp_path, "--api-key", "the-right-key") as served:
        other = doctor("serve", served.url, *_LOOK, "--apply-check", str(kept))["apply_check"]
    assert other["verdict"] == "other cause"
    assert "N4" in other["said"]


def test_a_file_that_is_no_report_is_refused(tmp_path: Path) -> None:
    import subprocess
    import sys

    log, kept = tmp_path / "a.log", tmp_path / "kept.json"
    log.write_text("INFO nothing\n")
    kept.write_text("{}")
    done = subprocess.run(
        [sys.executable, "-m", "headway.cli.main", "doctor", "log", str(log), "--apply-check", str(kept)], capture_output=True, text=True, check=False
    )
    assert done.returncode not in (0, -11)
    assert "is no report of the doctor" in done.stderr
