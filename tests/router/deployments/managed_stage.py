"""Runtimes whose workers are a script that obeys a file, for tests of processes that the router starts."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headway.router.deployments.deployments import RuntimeDeployments
from headway.router.deployments.runtime_environment import RuntimeEnvironment
from headway.router.deployments.runtimes import Runtimes
from headway.router.deployments.tempo import Tempo
from headway.router.metrics.registry import RouterMetrics
from tests.router.deployments.setups import NOUL, QUICK, document, soon

SCRIPT = Path(__file__).parent / "scripted_srun.py"
MODEL = {"provider": "model_runtime", "artifact": "/models/judge", "device": "cpu"}


class Stage:
    """One folder of the script, and the runtimes that use it."""

    def __init__(self, folder: Path, tempo: Tempo) -> None:
        self.folder = folder
        self.runtimes_folder = folder / "run"
        environment = RuntimeEnvironment(command=(sys.executable, str(SCRIPT), str(folder)), folder=self.runtimes_folder, threads=3, result_cache=0)
        self.metrics = RouterMetrics()
        self.runtimes = Runtimes(self.metrics, environment, tempo)

    def mode(self, word: str) -> None:
        (self.folder / "mode").write_text(word)

    @property
    def starts(self) -> list[dict[str, Any]]:
        path = self.folder / "starts"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def deployments(self, given: dict[str, Any] | None = None, **catalog: Any) -> RuntimeDeployments:
        given = given or {"judge": MODEL}
        found = RuntimeDeployments(document(given, **catalog), self.runtimes, {})
        found.start(given.keys())
        return found


@pytest.fixture
def folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="hw"))  # short: sockets lie in it
    yield path
    shutil.rmtree(path)


@asynccontextmanager
async def stage_in(folder: Path, mode: str = "ready", **tempo: Any) -> AsyncIterator[Stage]:
    stage = Stage(folder, replace(QUICK, **tempo))
    stage.mode(mode)
    try:
        yield stage
    finally:
        await stage.runtimes.close()
        for start in stage.starts:
            assert not alive(start["pid"])


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def ask(found: RuntimeDeployments, name: str = "judge") -> Any:
    participant = found.open(soon()).join()
    try:
        return await participant.decide(name, NOUL, "text")
    finally:
        participant.leave()
