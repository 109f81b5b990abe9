"""`vllm-srun golden record|verify`: answers with their circumstances, and drift as an exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headway.cli.srun_golden import DRIFT_CODE
from tests.cli.conftest import SrunCommand

MINE = {"rain": {"surface": "decisions", "body": {"state": "it rains", "questions": {"q": {"type": "noul", "instructions": "is it wet?"}}}}}


def _shift(path: Path, by: float) -> None:
    """Change one recorded number."""
    content = json.loads(path.read_text())
    content["accelerators"]["cpu"]["answers"]["rain"]["answers"]["q"]["noul"] += by
    path.write_text(json.dumps(content))


def test_what_is_recorded_is_verified(command: SrunCommand, package: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text(json.dumps(MINE))
    code, out, err = command("golden", "record", package, "--requests", tmp_path / "mine.json", "--json", "--threads", "1")
    assert code == 0, err
    recorded = json.loads(out)
    assert recorded["answered"] == ["decisions", "rain"]
    assert {"headway", "torch", "cpu", "cpu_features", "dtype", "threads"} <= recorded["recorded"].keys()
    path = Path(recorded["path"])
    assert path == package.with_name(f"{package.name}.golden.json")

    code, out, _ = command("golden", "verify", package, "--json", "--threads", "1")
    verified = json.loads(out)
    assert (code, verified["status"], verified["matched"], verified["tolerance"]) == (0, "matched", verified["checked"], 1e-3)
    assert verified["changed"] == {}

    _shift(path, 9e-4)
    assert command("golden", "verify", package, "--threads", "1")[0] == 0
    assert command("golden", "verify", package, "--threads", "1", "--tolerance", "1e-6")[0] == DRIFT_CODE
    _shift(path, 9e-4)
    code, out, _ = command("golden", "verify", package, "--threads", "1")
    assert code == DRIFT_CODE
    assert "rain q is off by 0.0018" in out


def test_changed_circumstances_are_told(command: SrunCommand, package: Path, tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    assert command("golden", "record", package, "--output", path, "--threads", "1")[0] == 0
    content = json.loads(path.read_text())
    content["accelerators"]["cpu"]["recorded"]["cpu"] = "Intel 4004"
    path.write_text(json.dumps(content))
    code, out, _ = command("golden", "verify", package, "--reference", path, "--threads", "1")
    assert code == 0
    assert "cpu: recorded with Intel 4004, now " in out


def test_without_a_record_there_is_nothing_to_verify(command: SrunCommand, package: Path) -> None:
    code, _, err = command("golden", "verify", package)
    assert code == 1
    assert "Run `vllm-srun golden record` first" in err


def test_a_record_of_another_model_is_refused(command: SrunCommand, package: Path, tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    assert command("golden", "record", package, "--output", path)[0] == 0
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | {"model_sha256": "0" * 64}))
    code, _, err = command("golden", "verify", package, "--reference", path)
    assert code == 1
    assert "holds answers of another model: it names 0000000000000000..." in err


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"x": {"surface": "chat", "body": {}}}, "'x' must be an object of surface"),
        ({"x": {"surface": "decisions"}}, "'x' must be an object of surface"),
        ({"x": {"surface": "decisions", "body": {}}}, "'x': "),
        ({"x": {"surface": "rerank", "body": {"query": "a", "documents": ["b"]}}}, "'x' is a request for rerank, which the model does not serve"),
        ({"decisions": MINE["rain"]}, "the name 'decisions' is that of a default request"),
    ],
)  # fmt: skip
def test_wrong_requests(command: SrunCommand, package: Path, tmp_path: Path, given: object, said: str) -> None:
    (tmp_path / "mine.json").write_text(json.dumps(given))
    code, _, err = command("golden", "record", package, "--requests", tmp_path / "mine.json")
    assert code == 1
    assert said in err
