"""The same logs in a restart loop, under a flood of other lines, behind the prefix of a rank: the cause stays the cause."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.doctor.judging import Material, fixture, fixture_names, judged

Telling = Callable[[bytes], bytes]
_INFO = b"INFO 11-29 09:14:03 [metrics_exporter.py:77] exported 12 series\n"


def _restart_loop(log: bytes) -> bytes:
    return log.rstrip(b"\n") + b"\n" + log + log


def _flood(log: bytes) -> bytes:
    lines = log.split(b"\n")
    return b"\n".join(line + b"\n" + _INFO * (2000 // len(lines)) for line in lines)


def _behind_a_rank(log: bytes) -> bytes:
    return b"\n".join(b"[rank0]: " + line if line else line for line in log.split(b"\n"))


@pytest.mark.parametrize("telling", [_restart_loop, _flood, _behind_a_rank])
def test_the_cause_stays_the_cause(telling: Telling, tmp_path: Path) -> None:
    wrong: list[str] = []
    for name in fixture_names():
        known = fixture(name)
        material = Material(telling(known.material.log), known.material.context)
        if fault := judged(material, known.expectation, tmp_path):
            wrong.append(f"{name}: {fault[:200]}")
    assert len(wrong) <= 1, "\n".join(wrong)
