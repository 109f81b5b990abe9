"""`headway env` as a process: it names the kernels that run, follows the variable that chooses them, and masks keys."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from headway.kernels.native.library import native_library


def env(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "headway.cli.main", "env", *words]
    return subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, check=False)


def shown(**variables: str) -> dict[str, Any]:
    run = env("--json", **variables)
    assert run.returncode == 0, run.stderr
    found: dict[str, Any] = json.loads(run.stdout)
    return found


def test_the_kernels_that_run_and_a_masked_key() -> None:
    found = shown(VLLM_API_KEY="sk-0123456789abcdef", HEADWAY_KERNELS="auto")
    assert found["Kernels"]["active"] == (native_library().sets or ("torch",))[0]
    assert "sk-0123456789abcdef" not in json.dumps(found)
    assert "VLLM_API_KEY" in found["Variables"]


def test_torch_is_chosen_by_the_variable() -> None:
    assert shown(HEADWAY_KERNELS="torch")["Kernels"]["active"] == "torch"


def test_kernels_that_are_not_there() -> None:
    run = env(HEADWAY_KERNELS="neon9")
    assert run.returncode != 0
    assert "HEADWAY_KERNELS=neon9" in run.stderr
    assert "auto, torch" in run.stderr


@pytest.mark.parametrize("title", ["Machine", "Packages", "Headway"])
def test_for_people(title: str) -> None:
    assert title in env().stdout
