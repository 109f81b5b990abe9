"""lm-evaluation-harness asks a real server the same questions: the same numbers as here, in process and over HTTP.

It is installed into an environment of its own, since it brings half a gigabyte of packages that nothing else needs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headway.evaluation.evaluate import evaluate, evaluate_server
from headway.evaluation.evaluation import Evaluation
from headway.evaluation.request import EvaluationRequest
from headway.evaluation.task_file import read_task
from tests.e2e.served_model import MODEL, Served, serve
from tests.shim.environments import Environment, environment

VERSION = "0.4.13"
QUESTIONS = 30
SHOTS = 2
TASK = """\
task: local_questions
dataset_path: json
dataset_kwargs:
  data_files:
    test: {folder}/test.jsonl
    dev: {folder}/dev.jsonl
test_split: test
fewshot_split: dev
fewshot_config:
  sampler: first_n
output_type: multiple_choice
doc_to_text: "{{{{question}}}}"
doc_to_choice: choices
doc_to_target: answer
metric_list:
  - metric: acc
    aggregation: mean
    higher_is_better: true
  - metric: acc_norm
    aggregation: mean
    higher_is_better: true
"""
PACKAGED = Path(__file__).parents[2] / "src" / "headway" / "evaluation" / "packaged" / "questions.jsonl"


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    made = environment(tmp_path_factory.mktemp("harness"))
    done = subprocess.run(
        [sys.executable, "-m", "pip", "--python", str(made.python), "install", "--quiet", f"lm-eval[api]=={VERSION}"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return made


@pytest.fixture(scope="module")
def cache() -> str | None:
    """Of the model, which another fixture hides."""
    return os.environ.get("HEADWAY_CACHE")


@pytest.fixture(scope="module")
def served(cache: str | None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("server")
    with serve(folder, "--dtype", "float32", "--max-model-len", "512", "--enable-tokenizer-info-endpoint") as server:
        yield server


@pytest.fixture(autouse=True)
def own_cache(cache: str | None) -> None:
    """The models that are there, instead of an empty cache."""


def asked(harness: Environment, served: Served, folder: Path, shots: int) -> tuple[dict[str, float], list[np.ndarray]]:
    """What lm-eval prints, and the log-probability of each choice of each question."""
    (folder / "task.yaml").write_text(TASK.format(folder=folder))
    arguments = f"model={MODEL},base_url={served.url}/v1/completions,tokenizer_backend=remote,num_concurrent=1,max_length=512"
    variables = {**harness.variables(), "HF_HOME": str(folder / "hf"), "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    done = subprocess.run(
        [harness.folder / "bin" / "lm_eval", "--model", "local-completions", "--model_args", arguments, "--batch_size", "8", "--include_path", folder,
         "--tasks", "local_questions", "--num_fewshot", str(shots), "--output_path", folder / "out", "--log_samples"],
        env=variables, cwd=folder, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-5000:]
    [results] = (folder / "out").rglob("results_*.json")
    [samples] = (folder / "out").rglob("samples_*.jsonl")
    rows = sorted((json.loads(line) for line in samples.read_text().splitlines()), key=lambda row: row["doc_id"])
    figures = json.loads(results.read_text())["results"]["local_questions"]
    names = {"acc": "acc,none", "acc_stderr": "acc_stderr,none", "acc_norm": "acc_norm,none", "acc_norm_stderr": "acc_norm_stderr,none"}
    return {name: figures[theirs] for name, theirs in names.items()}, [np.array([float(each[0][0]) for each in row["resps"]]) for row in rows]


@pytest.mark.long
@pytest.mark.e2e
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("shots", [0, SHOTS])
def test_the_same_questions_give_the_same_numbers(harness: Environment, served: Served, tmp_path: Path, shots: int) -> None:
    lines = PACKAGED.read_text().splitlines()[: SHOTS + QUESTIONS]
    (tmp_path / "dev.jsonl").write_text("\n".join(lines[:SHOTS]))
    (tmp_path / "test.jsonl").write_text("\n".join(lines[SHOTS:]))
    whole = tmp_path / "questions.jsonl"
    whole.write_text("\n".join(lines if shots else lines[SHOTS:]))
    task = read_task(whole, shots)
    request = EvaluationRequest((), (task,), dtype="float32", max_length=511)
    figures, theirs = asked(harness, served, tmp_path, shots)
    here: Evaluation = evaluate(MODEL, request)
    there = evaluate_server(served.url, None, None, None, request)
    for found in (here, there):
        assert found.measured is not None
        [result] = found.measured.tasks
        assert len(result.logprobs) == len(theirs) == QUESTIONS
        for ours, expected in zip(result.logprobs, theirs, strict=True):
            assert ours == pytest.approx(expected, abs=2e-3)
        ours_figures: dict[str, Any] = result.as_json()
        assert ours_figures == pytest.approx(figures)
    assert figures["acc"] > 0.5
