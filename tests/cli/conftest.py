"""Running `vllm-srun` in this process, and a package for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from headway.cli.srun import run

SrunCommand: TypeAlias = Callable[..., tuple[int, str, str]]
"""Words -> exit code, standard output, standard error."""


@pytest.fixture
def command(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> SrunCommand:
    monkeypatch.setenv("HEADWAY_CACHE", str(tmp_path / "cache"))

    def call(*words: object) -> tuple[int, str, str]:
        code = 0
        try:
            run([str(word) for word in words])
        except SystemExit as end:
            code = int(end.code or 0)
        out, err = capfd.readouterr()
        return code, out, err

    return call


@pytest.fixture
def package(command: SrunCommand, tmp_path: Path) -> Path:
    """A seeded `.sparrow` file."""
    code, _, err = command("fixture", tmp_path / "model", "--family", "sparrow")
    assert code == 0, err
    [found] = (tmp_path / "model").glob("*.sparrow")
    return found
