"""Runs that are killed: the next one goes on, and its bytes are those of a run that nobody interrupted."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from headway.artifacts.inspect import inspect
from headway.compression.method import METHODS
from headway.compression.report import Report
from headway.compression.request import QuantizeRequest
from headway.compression.run import quantize
from headway.compression.work_folder import WorkFolder
from headway.errors import ConfigError
from tests.compression.tiny_runs import LENGTH, SAMPLES, compressed, write_texts
from tests.engine.tiny_folder import complete_tiny_model

LAYERS = 3


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return complete_tiny_model("smollm", tmp_path_factory.mktemp("resume")).folder


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWAY_CACHE", str(tmp_path / "cache"))


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def killed(work: Callable[[], object]) -> None:
    """`work` in a child process that ends by SIGKILL."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(3)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), os.waitstatus_to_exitcode(status)
    assert os.WTERMSIG(status) == signal.SIGKILL


def at_step(source: Path, output: Path, method: str, step: int) -> Report:
    """A run that kills its process after `step` steps of its own."""
    steps = iter(range(1, 1000))

    def progress(label: str, done: int, total: int) -> None:
        if next(steps) == step:
            os.kill(os.getpid(), signal.SIGKILL)

    return quantize(inspect(str(source)), QuantizeRequest(METHODS[method], output, output.parent / "texts.txt", SAMPLES, LENGTH), progress)


@pytest.mark.parametrize("method", ["gptq", "awq", "int8"])
def test_killed_again_and_again(method: str, source: Path, tmp_path: Path) -> None:
    write_texts(tmp_path / "texts.txt")
    compressed(source, method, tmp_path / "whole")
    output = tmp_path / "out"
    resumed = []
    for step in (2, 3, 4, 2, 3):  # while texts run, after a layer was rounded, while its outputs are written
        killed(lambda step=step: at_step(source, output, method, step))
        assert not output.exists()
        resumed.append(len(json.loads((tmp_path / "out.part" / "state.json").read_text())["done"]))
        if resumed[-1] >= LAYERS - 1:
            break
    report = compressed(source, method, output)
    assert report.resumed_at == resumed[-1] > 0
    assert len(report.layers) == LAYERS * 4, "also what the killed runs found"
    assert contents(output) == contents(tmp_path / "whole")
    assert not (tmp_path / "out.part").exists()


def test_other_settings_begin_anew(source: Path, tmp_path: Path) -> None:
    write_texts(tmp_path / "texts.txt")
    output = tmp_path / "out"
    killed(lambda: at_step(source, output, "gptq", 5))
    assert json.loads((tmp_path / "out.part" / "state.json").read_text())["done"]
    report = compressed(source, "gptq", output, samples=SAMPLES - 2)
    assert report.resumed_at == 0
    assert any("thrown away" in note for note in report.notes)
    compressed(source, "gptq", tmp_path / "whole", samples=SAMPLES - 2)
    assert contents(output) == contents(tmp_path / "whole")


def test_another_model_of_the_same_name_begins_anew(source: Path, tmp_path: Path) -> None:
    copy = tmp_path / "model"
    shutil.copytree(source, copy)
    write_texts(tmp_path / "texts.txt")
    killed(lambda: at_step(copy, tmp_path / "out", "int8", 2))
    weights = bytearray((copy / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (copy / "model.safetensors").write_bytes(weights)
    assert compressed(copy, "int8", tmp_path / "out").resumed_at == 0


def test_hidden_states_that_are_gone_begin_anew(source: Path, tmp_path: Path) -> None:
    write_texts(tmp_path / "texts.txt")
    killed(lambda: at_step(source, tmp_path / "out", "gptq", 5))
    for file in (tmp_path / "out.part").glob("hidden-*"):
        file.unlink()
    assert compressed(source, "gptq", tmp_path / "out").resumed_at == 0


def test_one_process_at_a_time(source: Path, tmp_path: Path) -> None:
    with WorkFolder(tmp_path / "out").opened(), pytest.raises(ConfigError) as refused:
        compressed(source, "int8", tmp_path / "out")
    assert refused.value.reason == "output_busy"


@pytest.mark.long
@pytest.mark.timeout(600)
def test_the_command_killed_from_outside(source: Path, tmp_path: Path) -> None:
    texts = write_texts(tmp_path / "texts.txt", texts=400)
    words = [sys.executable, "-m", "headway.cli.main", "quantize", str(source), "--method", "gptq", "--calibration", str(texts), "--max-length", "64",
             "--samples", "400"]  # fmt: skip
    state, kills = tmp_path / "out.part" / "state.json", 0
    while kills < 2:
        process = subprocess.Popen([*words, "--output", str(tmp_path / "out")], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        before = done(state)
        while done(state) <= before and process.poll() is None:
            time.sleep(0.002)
        process.kill()
        kills += process.wait() == -signal.SIGKILL
        if (tmp_path / "out").exists():
            break
    for name in ("out", "whole"):
        if not (tmp_path / name).exists():
            subprocess.run([*words, "--output", str(tmp_path / name)], check=True, capture_output=True)
    assert kills
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def done(state: Path) -> int:
    try:
        return len(json.loads(state.read_text())["done"])
    except (OSError, ValueError):
        return 0
