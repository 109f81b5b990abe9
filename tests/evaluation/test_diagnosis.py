"""Broken checkpoints are found, and called by their name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from headway.evaluation.evaluate import evaluate
from headway.evaluation.evaluation import Evaluation
from headway.evaluation.request import EvaluationRequest
from tests.evaluation.trained_model import copy_folder, gptq_copy, text


def found(model: Path, against: Path | None = None, **more: Any) -> Evaluation:
    request = EvaluationRequest((text(),), (), None if against is None else str(against), dtype="float32", max_length=128, **more)
    return evaluate(str(model), request)


def altered(model: Path, home: Path, change: dict[str, torch.Tensor]) -> Path:
    copy_folder(model, home, {})
    save_file(load_file(model / "model.safetensors") | change, home / "model.safetensors", {"format": "pt"})
    return home


def test_a_model_that_is_whole_makes_sense(trained: Path) -> None:
    answer = found(trained)
    assert answer.decision == "pass"
    assert answer.cause is None


@pytest.mark.parametrize(("version", "says"), [(2, "gptq"), (1, "gptq_v2")])
def test_zero_points_of_the_other_version(trained: Path, tmp_path: Path, version: int, says: str) -> None:
    right = found(gptq_copy(trained, tmp_path / "right", version=version, says={"gptq": "gptq_v2", "gptq_v2": "gptq"}[says]), trained)
    wrong = found(gptq_copy(trained, tmp_path / "wrong", version=version, says=says), trained)
    assert right.comparison is not None
    assert wrong.comparison is not None
    assert right.cause is None
    assert wrong.comparison.judgements[0].worse.low > right.comparison.judgements[0].worse.high
    assert wrong.decision == "fail"
    assert wrong.cause is not None
    assert wrong.cause.startswith("zero points are off by one")
    assert f"Set checkpoint_format to {'gptq_v2' if version == 2 else 'gptq'}" in wrong.cause


def test_a_wrong_group_size(trained: Path, tmp_path: Path) -> None:
    answer = found(gptq_copy(trained, tmp_path / "m", version=1, says="gptq", group_says=16))
    assert answer.decision == "fail"
    assert answer.measured is None
    assert answer.problem is not None
    assert "groups of 16" in answer.problem
    assert answer.cause is not None
    assert "Set group_size to 32" in answer.cause


def test_swapped_tensors(trained: Path, tmp_path: Path) -> None:
    tensors = load_file(trained / "model.safetensors")
    a, b = "model.layers.0.self_attn.q_proj.weight", "model.layers.1.self_attn.q_proj.weight"
    answer = found(altered(trained, tmp_path / "m", {a: tensors[b], b: tensors[a]}), trained)
    assert answer.decision == "fail"
    assert answer.cause is not None
    assert answer.cause.startswith(f"tensors are swapped: {a} holds what belongs to {b}, {b} holds what belongs to {a}")


def test_a_damaged_tensor(trained: Path, tmp_path: Path) -> None:
    name = "model.layers.1.mlp.down_proj.weight"
    noise = torch.randn(64, 96, generator=torch.Generator().manual_seed(1))
    answer = found(altered(trained, tmp_path / "m", {name: noise}), trained)
    assert answer.cause is not None
    assert f"1 of 21 weights have nothing in common with those of the baseline: {name}" in answer.cause


def test_weights_that_are_no_numbers(trained: Path, tmp_path: Path) -> None:
    name = "model.layers.0.mlp.up_proj.weight"
    weight = load_file(trained / "model.safetensors")[name].clone()
    weight[3, 5] = float("nan")
    answer = found(altered(trained, tmp_path / "m", {name: weight}))
    assert answer.decision == "fail"
    assert answer.problem is not None
    assert "not numbers" in answer.problem
    assert answer.cause is not None
    assert f"1 of 21 weights hold infinities or NaN: {name}" in answer.cause
    assert json.dumps(answer.as_json())


def test_random_weights_make_no_sense(trained: Path, tmp_path: Path) -> None:
    generator = torch.Generator().manual_seed(1)
    noise = {name: torch.randn(tensor.shape, generator=generator) for name, tensor in load_file(trained / "model.safetensors").items()}
    answer = found(altered(trained, tmp_path / "m", noise), trained)
    assert answer.decision == "fail"
    assert answer.problem is not None
    assert "worse than byte frequencies" in answer.problem
    assert answer.cause is not None
    assert "another model" in answer.cause


def test_a_truncated_file_fails(trained: Path, tmp_path: Path) -> None:
    home = altered(trained, tmp_path / "m", {})
    weights = (home / "model.safetensors").read_bytes()
    (home / "model.safetensors").write_bytes(weights[:-100])
    answer = found(home)
    assert answer.decision == "fail"
    assert answer.measured is None
    assert answer.problem
