from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headway.bench.simulation.step_times import StepWork, constant_steps, save_step_times
from headway.cli.simulate import simulate_command
from headway.cli.simulate_screen import sparkline
from headway.errors import ConfigError


def run(*words: str) -> Result:
    return CliRunner().invoke(simulate_command, list(words), catch_exceptions=False)


@pytest.fixture
def times(tmp_path: Path) -> str:
    save_step_times(constant_steps(0.01), tmp_path / "times.json")
    return str(tmp_path / "times.json")


def test_a_trace_over_several_fleets(times: str, tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    trace.write_text("".join(json.dumps({"arrival": i / 100, "prompt_tokens": 50, "output_tokens": 20}) + "\n" for i in range(200)))
    words = [str(trace), "--step-times", times, "--replicas", "1,4", "--num-blocks", "100", "--max-num-seqs", "4", "--ttft-ms", "100", "--price-per-hour", "3.6"]
    one, four = json.loads(run(*words, "--json").stdout)["outcomes"]
    assert (one["replicas"], four["replicas"], one["output_tokens"]) == (1, 4, 4000)
    assert one["attained"] < four["attained"]
    assert one["cost"] == pytest.approx(one["seconds"] * 3.6 / 3600)
    shown = run(*words).stdout
    assert "promises kept" in shown
    assert "▁" in shown


def test_made_up_traffic(times: str) -> None:
    words = ["--step-times", times, "--rate", "0:5,5:50", "--num-prompts", "100", "--num-blocks", "1000", "--placement", "least-load", "--json"]
    (found,) = json.loads(run(*words).stdout)["outcomes"]
    assert (found["completed"], found["placement"]) == (100, "least-load")


def test_a_fit_alone_is_kept(tmp_path: Path) -> None:
    records = tmp_path / "steps.jsonl"
    records.write_text("".join(json.dumps({"seconds": 0.01 + 0.001 * rows, **asdict(StepWork(decode_rows=rows, sampled=rows))}) + "\n" for rows in range(1, 17) for _ in range(10)))
    shown = run("--fit", str(records), "--save-step-times", str(tmp_path / "times.json"))
    assert shown.exit_code == 0
    (found,) = json.loads(run("--step-times", str(tmp_path / "times.json"), "--rate", "1", "--num-prompts", "1", "--output-len", "11", "--range-ratio", "0",
                              "--input-len", "1", "--num-blocks", "9", "--json").stdout)["outcomes"]  # fmt: skip
    assert found["e2e"]["mean"] == pytest.approx(11 * 0.011, rel=0.02)


@pytest.mark.parametrize(
    "words",
    [
        ["--rate", "1"], ["--step-times", "TIMES"], ["--step-times", "TIMES", "--rate", "1"], ["--step-times", "TIMES", "--rate", "x", "--num-blocks", "9"],
        ["--step-times", "TIMES", "--rate", "1", "--num-blocks", "9", "--replicas", "two"], ["--step-times", "TIMES", "--rate", "1", "--num-blocks", "9", "--replicas", "1," * 40 + "1"],
        ["--step-times", "TIMES", "--rate", "1", "--num-blocks", "9", "--price-per-hour", "-1"], ["TIMES", "--step-times", "TIMES", "--input-len", "3", "--num-blocks", "9"],
        ["--step-times", "TIMES", "--fit", "TIMES", "--rate", "1"],
    ],
)  # fmt: skip
def test_wrong_use_is_refused(times: str, words: list[str]) -> None:
    with pytest.raises(ConfigError):
        run(*[times if word == "TIMES" else word for word in words])


def test_a_picture_in_one_line() -> None:
    assert sparkline([0, None, 4, 8]) == "▁ ▅█"
    assert sparkline([0, 0]) == "▁▁"
    assert sparkline([]) == ""
