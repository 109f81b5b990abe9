"""Checkpoints of `headway quantize` in vLLM 0.32 (recorded once, see `record_vllm_cpu.py`) and here: the same log probabilities."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

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


def compare(folder: Path, name: str) -> tuple[float, int]:
    """The largest difference of a log probability over all recorded ones, each behind the tokens that vLLM wrote, and how many of
    vLLM's greedy tokens are the likeliest here, too."""
    model = load_model(inspect(str(folder)), torch.float32)
    largest, same = 0.0, 0
    for answer in RECORDED[name]:
        whole = answer["prompt"] + answer["tokens"]
        here = in_chunks(model, whole[:-1], 64)[len(answer["prompt"]) - 1 :].log_softmax(-1)
        same += sum(int(row.argmax()) == token for row, token in zip(here, answer["tokens"], strict=True))
        for row, step in zip(here, answer["logprobs"], strict=True):
            largest = max(largest, *(abs(float(row[int(token)]) - there) for token, there in step.items()))
    return largest, same


# vLLM's bfloat16 is up to this far from float32; of int8 and fp8 it also rounds activations, to 8 bits.
ALLOWED = {"dense": 2e-4, "int8": 0.1, "fp8": 0.4, "int4-g128": 0.15, "awq": 0.15, "gptq": 0.15}


@pytest.mark.parametrize("name", ["dense", *METHODS])
def test_tiny(models: Path, name: str) -> None:
    largest, same = compare(models / name, name)
    assert largest < ALLOWED[name]
    assert same >= 3 * COUNT * (1.0 if name == "dense" else 0.85)


def test_another_checkpoint_would_be_noticed(models: Path) -> None:
    """The differences that are allowed are much smaller than those between checkpoints."""
    for name in METHODS:
        other = "awq" if name == "gptq" else "gptq"
        assert compare(models / other, name)[0] > 2 * ALLOWED[name] or name == "fp8"


def test_what_was_recorded() -> None:
    assert set(RECORDED) == {"dense", *METHODS, "smollm2-int8", "smollm2-int4-g128"}
    assert set(DTYPES) < set(RECORDED)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("method", "allowed"), [("int8", 0.4), ("int4-g128", 0.3)])
def test_smollm2(method: str, allowed: float, tmp_path: Path) -> None:
    compressed("smollm2-135m-instruct", method, tmp_path / "out")
    largest, same = compare(tmp_path / "out", f"smollm2-{method}")
    assert largest < allowed
    assert same >= 0.9 * 3 * COUNT
    tokenizer = load_tokenizer(inspect(str(tmp_path / "out")))
    assert [answer["prompt"] for answer in RECORDED[f"smollm2-{method}"]] == [tokenizer.encode(text) for text in TEXTS], "the tokenizer that was written"
