from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from headway.bench.simulation.step_times import load_step_times
from headway.cli.plan import plan_command

CLUSTER = """
[node]
count = 2
devices = 8
device = "h100"

[link]
latency_us = 6
bandwidth = "300GB/s"

[network]
latency_us = 12
bandwidth = "25GB/s"
"""


@pytest.fixture
def cluster(tmp_path: Path) -> str:
    path = tmp_path / "cluster.toml"
    path.write_text(CLUSTER)
    return str(path)


def answer(*words: str, code: int = 0) -> dict[str, Any]:
    result = CliRunner().invoke(plan_command, [*words, "--json"])
    assert result.exit_code == code, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_the_answer_shows_its_sum(cluster: str, tmp_path: Path) -> None:
    times = tmp_path / "times.json"
    found = answer("llama-3.3-70b", "--cluster", cluster, "--itl-ms", "50", "--save-step-times", str(times))
    best = found["recommended"]
    assert best["output_tokens_per_second"] == max(row.get("output_tokens_per_second", 0.0) for row in found["layouts"])
    assert best["itl_seconds"] <= 0.05
    for step in ("decode_step", "prompt_step"):
        assert sum(term["seconds"] for term in best[step]["terms"] if term["counted"]) == pytest.approx(best[step]["seconds"])
    assert any("data sheet" in note for note in found["notes"])
    assert found["command"].startswith(f"headway serve MODEL -tp {best['tensor_parallel_size']}")
    saved = load_step_times(times).origin
    assert saved["num_blocks"] > 0
    assert saved["tensor_parallel_size"] == found["step_times"]["tensor_parallel_size"]


def test_the_screen_shows_one_line_per_term(cluster: str) -> None:
    result = CliRunner().invoke(plan_command, ["llama-3.3-70b", "--cluster", cluster, "--itl-ms", "50"])
    assert result.exit_code == 0
    for word in ("all-reduce:", "read:", "multiply:", "headway serve MODEL", "tensor parallel"):
        assert word in result.output


def test_what_fits_nowhere_exits_with_one(tmp_path: Path) -> None:
    (tmp_path / "small.json").write_text(json.dumps({"node": {"device": "rtx4090"}}))
    found = answer("llama-3.3-70b", "--cluster", str(tmp_path / "small.json"), code=1)
    assert found["recommended"] is None
    assert "needs" in found["layouts"][0]["obstacle"]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["llama-3.3-70b", "--input-len", "5"], "invalid_config"),
        (["--cluster", "CLUSTER"], "invalid_config"),
        (["llama-3.3-70b", "--cluster", "CLUSTER", "--device", "h100"], "invalid_config"),
        (["llama-3.3-70b", "--cluster", "CLUSTER", "-tp", "2"], "invalid_config"),
        (["llama-3.3-70b", "--cluster", "CLUSTER", "--ttft-ms", "0"], "invalid_config"),
        (["llama-3.3-70b", "--cluster", "CLUSTER", "--output-len", "0"], "invalid_config"),
        (["llama-3.3-70b", "--cluster", "CLUSTER", "--quantization", "no"], "invalid_config"),
        (["llama-3.3-70b", "--cluster", "/nowhere.toml"], "missing_file"),
        (["llama-3.3-70b", "--cluster", "BROKEN"], "cluster_invalid"),
    ],
)
def test_questions_that_cannot_be_answered(cluster: str, tmp_path: Path, words: list[str], reason: str) -> None:
    broken = tmp_path / "broken.toml"
    broken.write_text("[node\n")
    given = [{"CLUSTER": cluster, "BROKEN": str(broken)}.get(word, word) for word in words]
    assert answer(*given, code=2)["error"]["reason"] == reason
