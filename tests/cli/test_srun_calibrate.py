"""`vllm-srun calibrate`: from labelled lines to a file beside the package, a report and a picture."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headway.runtime.calibration.store import FILE_NAME
from headway.runtime.loading.model_entry import ModelEntry
from headway.runtime.one_model import one_model
from headway.runtime.plan import run_plan
from headway.runtime.settings import WorkerSettings
from headway.wire.decision_body import read_decision_body
from tests.cli.conftest import SrunCommand

PLANTED = 2.5
WORDS = ("red", "green", "blue", "fast", "slow", "north", "south", "warm", "cold", "early", "late", "loud")


def _ask(package: Path, states: Sequence[dict[str, Any]]) -> list[dict[str, float]]:
    """Probabilities of the one question of each state, as the package gives them."""
    with one_model(ModelEntry(str(package)), WorkerSettings(threads=1)) as one:
        model = one.opened.model
        plans = [model.planners["decisions"](read_decision_body(state)) for state in states]
        return [one.device.call(lambda plan=plan: run_plan(model, plan))["answers"]["q"]["probabilities"] for plan in plans]  # type: ignore[misc]


def _labelled(package: Path, path: Path, count: int) -> Path:
    """Truths are drawn from the package's own distribution, flattened by PLANTED."""
    chance = np.random.default_rng(5)
    bodies = []
    for number in range(count):
        words = chance.choice(WORDS, 9)
        criteria = dict.fromkeys(map(str, chance.choice(WORDS, 4, replace=False)))
        question = {"type": "choice", "instructions": f"what about {words[0]}?", "criteria": criteria}
        bodies.append({"state": f"{number} {' '.join(words)}", "questions": {"q": question}})
    lines = []
    for body, known in zip(bodies, _ask(package, bodies), strict=True):
        p = np.array(list(known.values())) ** (1 / PLANTED)
        lines.append(body | {"answers": {"q": str(chance.choice(list(known), p=p / p.sum()))}})
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


def test_a_planted_temperature_comes_out(command: SrunCommand, package: Path, tmp_path: Path) -> None:
    data = _labelled(package, tmp_path / "data.jsonl", 1500)
    code, out, err = command("calibrate", package, "--data", data, "--held-out", "0.1", "--threads", "1", "--json")
    assert code == 0, err
    report = json.loads(out)
    stated = 1.25  # of the fixture, for choices
    assert report["temperatures"]["choice"] == pytest.approx(PLANTED * stated, rel=0.05)
    assert report["temperatures"]["choice:3-5"] == report["temperatures"]["choice"]
    [choice] = report["types"]
    assert choice["after"]["nll"] < choice["before"]["nll"]
    kept = json.loads(Path(report["path"]).read_text())
    assert report["path"] == f"{package}.{FILE_NAME}"
    assert kept["model_sha256"] == report["model_sha256"]


def test_the_report_says_what_became_of_everything(command: SrunCommand, package: Path, tmp_path: Path) -> None:
    data, png = _labelled(package, tmp_path / "data.jsonl", 150), tmp_path / "reliability.png"
    code, out, err = command("calibrate", package, "--data", data, "--precision", "0.3", "--png", png, "--threads", "1")
    assert code == 0, err
    for expected in ("choice: ", " examples fitted, ", "before accuracy", "after  accuracy", "ECE 0.", "abstained", f"written to {package}.{FILE_NAME}"):
        assert expected in out
    assert png.read_bytes().startswith(b"\x89PNG")


def test_a_picture_without_matplotlib_says_what_to_install(
    command: SrunCommand, package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, _, err = command("calibrate", package, "--data", tmp_path / "no.jsonl", "--png", tmp_path / "x.png")
    assert code == 1
    assert "pip install 'headway[calibrate]'" in err


def test_wrong_data_is_one_line(command: SrunCommand, package: Path, tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_text('{"state": "secret"}')
    code, out, err = command("calibrate", package, "--data", tmp_path / "d.jsonl")
    assert (code, out) == (1, "")
    assert "line 1: answers must be an object" in err
    assert "secret" not in err
    code, _, err = command("calibrate", package, "--data", tmp_path / "absent.jsonl")
    assert "cannot be read: No such file" in err


def test_too_few_examples(command: SrunCommand, package: Path, tmp_path: Path) -> None:
    code, _, err = command("calibrate", package, "--data", _labelled(package, tmp_path / "d.jsonl", 30), "--threads", "1")
    assert code == 1
    assert "no question type has 50 examples to fit a temperature to" in err
    assert not Path(f"{package}.{FILE_NAME}").exists()
