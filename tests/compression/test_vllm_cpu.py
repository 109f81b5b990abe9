"""Checkpoints of `headway quantize` in vLLM 0.32 (recorded once, see `record_vllm_cpu.py`) and here: the same log probabilities."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, CompressedTensorsConfig

from headway.artifacts.inspect import inspect
from headway.artifacts.tokenizer import load_tokenizer
from headway.compression.method import METHODS
from headway.models.load import load_model
from tests.compression.record_vllm_cpu import COUNT, DTYPES, TEXTS
from tests.compression.tiny_runs import compressed
from tests.compression.write_vllm_models import write_models
from tests.models.runs import in_chunks

RECORDED: dict[str, list[dict[str, Any]]] = json.loads((Path(__file__).parent / "recorded" / "vllm_cpu.json").read_text())["answers"]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("vllm")
    write_models(root)
    return root


@dataclass(frozen=True)
class Differences:
    """Of log probabilities over all recorded ones, each behind the tokens that vLLM wrote; and how many of vLLM's greedy tokens are the
    likeliest here, too."""

    largest: float
    mean: float
    same: int


def differences(name: str, logits_of: Callable[[list[int]], torch.Tensor]) -> Differences:
    found: list[float] = []
    same = 0
    for answer in RECORDED[name]:
        whole = answer["prompt"] + answer["tokens"]
        here = logits_of(whole[:-1])[len(answer["prompt"]) - 1 :].log_softmax(-1)
        same += sum(int(row.argmax()) == token for row, token in zip(here, answer["tokens"], strict=True))
        for row, step in zip(here, answer["logprobs"], strict=True):
            found += [abs(float(row[int(token)]) - there) for token, there in step.items()]
    return Differences(max(found), sum(found) / len(found), same)


def compare(folder: Path, name: str) -> Differences:
    model = load_model(inspect(str(folder)), torch.float32)
    return differences(name, lambda text: in_chunks(model, text, 64))


@pytest.mark.parametrize("name", ["dense", "int4-g128", "awq", "gptq"])
def test_tiny(models: Path, name: str) -> None:
    """Of 4 bits vLLM has kernels in bfloat16, which is up to this far from float32."""
    found = compare(models / name, name)
    assert found.largest < (2e-4 if name == "dense" else 0.3)
    assert found.mean < (1e-4 if name == "dense" else 0.06)
    assert found.same >= 3 * COUNT * (1.0 if name == "dense" else 0.85)


def _int8(inputs: torch.Tensor) -> torch.Tensor:
    scale = inputs.abs().amax(-1, keepdim=True) / 127
    return (inputs / scale).round() * scale


def _fp8(inputs: torch.Tensor) -> torch.Tensor:
    scale = inputs.abs().amax(-1, keepdim=True) / 448
    return (inputs / scale).to(torch.float8_e4m3fn).float() * scale


@pytest.mark.parametrize(("name", "rounded", "allowed"), [("int8", _int8, 0.06), ("fp8", _fp8, 2e-4)])
def test_tiny_with_rounded_inputs(models: Path, name: str, rounded: Callable[[torch.Tensor], torch.Tensor], allowed: float) -> None:
    """vLLM rounds what goes into the matrices, too, each token with a scale of its own. transformers with the same checkpoint and
    the same rounding gives vLLM's numbers (of int8 up to ties between two integers); ours are those of transformers without rounding."""
    model = AutoModelForCausalLM.from_pretrained(
        models / name, dtype=torch.float32, attn_implementation="eager", quantization_config=CompressedTensorsConfig(dequantize=True)
    ).eval()
    for path, module in model.named_modules():
        if path.endswith("_proj"):
            module.register_forward_pre_hook(lambda _, inputs: (rounded(inputs[0]),))
    with torch.no_grad():
        found = differences(name, lambda text: model(torch.tensor([text])).logits[0])
    assert found.largest < allowed
    assert found.same == 3 * COUNT


def test_another_checkpoint_would_be_noticed(models: Path) -> None:
    """What is allowed is much less than what two methods differ by."""
    assert compare(models / "int4-g128", "gptq").mean > 0.12
    assert compare(models / "gptq", "int4-g128").mean > 0.12


def test_what_was_recorded() -> None:
    assert set(RECORDED) == {"dense", *METHODS, "smollm2-int8", "smollm2-int4-g128"}
    assert set(DTYPES) < set(RECORDED)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("method", "allowed"), [("int8", 0.35), ("int4-g128", 0.12)])
def test_smollm2(method: str, allowed: float, tmp_path: Path) -> None:
    """vLLM in bfloat16; of int8 it also rounds activations, a whole row to one scale, which is most of the difference (0.302 seen)."""
    compressed("smollm2-135m-instruct", method, tmp_path / "out")
    found = compare(tmp_path / "out", f"smollm2-{method}")
    assert found.mean < allowed
    assert found.same >= 0.9 * 3 * COUNT
    tokenizer = load_tokenizer(inspect(str(tmp_path / "out")))
    assert [answer["prompt"] for answer in RECORDED[f"smollm2-{method}"]] == [tokenizer.encode(text) for text in TEXTS], "the tokenizer that was written"
