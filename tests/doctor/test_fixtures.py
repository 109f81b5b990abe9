"""Logs with a known cause: the first finding is right, complete, proven, and proposes no wrong remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.doctor.judging import fixture, fixture_names, judged


@pytest.mark.parametrize("name", fixture_names())
def test_fixture(name: str, tmp_path: Path) -> None:
    known = fixture(name)
    assert judged(known.material, known.expectation, tmp_path) == ""
