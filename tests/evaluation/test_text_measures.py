"""Perplexity and divergence equal those that transformers' logits give on the same windows."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM

from headway.evaluation.evaluate import evaluate
from headway.evaluation.request import EvaluationRequest
from headway.evaluation.text_results import perplexity
from headway.evaluation.texts import Text
from headway.evaluation.token_scores import Head, token_comparison, token_logprobs
from tests.evaluation.trained_model import copy_folder, text


def noisy(model: Path, home: Path, size: float) -> Path:
    """Another model near it."""
    copy_folder(model, home, {})
    generator = torch.Generator().manual_seed(4)
    tensors = load_file(model / "model.safetensors")
    save_file({name: tensor + size * torch.randn(tensor.shape, generator=generator) for name, tensor in tensors.items()}, home / "model.safetensors")
    return home


def strided(model: Path, content: str, width: int, stride: int) -> tuple[torch.Tensor, list[int]]:
    """Log-probabilities [scored, V] float64 and targets, by the loop of transformers' guide to perplexity."""
    oracle: Any = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32, attn_implementation="eager").eval()
    ids = Tokenizer.from_file(str(model / "tokenizer.json")).encode(content, add_special_tokens=False).ids
    rows, targets, done = [], [], 0
    for end in [*range(width, len(ids), stride), len(ids)]:
        begin = max(end - width, 0)
        with torch.no_grad():
            table = torch.log_softmax(oracle(torch.tensor([ids[begin:end]])).logits[0].double(), -1)
        first = max(done, 1)
        rows.append(table[first - begin - 1 : end - begin - 1])
        targets += ids[first:end]
        done = end
    return torch.cat(rows), targets


def test_the_numbers_of_transformers(trained: Path, tmp_path: Path) -> None:
    other = noisy(trained, tmp_path / "other", 0.02)
    sample = Text("sample", text().content[:3000])
    found = evaluate(str(other), EvaluationRequest((sample,), (), str(trained), dtype="float32", max_length=64, stride=24)).as_json()
    base, targets = strided(trained, sample.content, 64, 24)
    ours, same = strided(other, sample.content, 64, 24)
    assert same == targets
    rows = torch.arange(len(targets))
    for side, table in (("model", ours), ("against", base)):
        nats = -float(table[rows, targets].sum())
        figures = found["texts"][side]
        assert figures["tokens"] == len(targets)
        assert figures["perplexity"] == pytest.approx(math.exp(nats / len(targets)), rel=1e-5)
        assert figures["bits_per_byte"] == pytest.approx(nats / math.log(2) / figures["bytes"], rel=1e-5)
        assert figures["word_perplexity"] == pytest.approx(math.exp(nats / len(sample.content.split())), rel=1e-5)
    kl = torch.nn.functional.kl_div(ours, base, log_target=True, reduction="none").sum(-1).numpy()
    expected = {"mean": kl.mean(), "median": np.median(kl), "p99": np.quantile(kl, 0.99), "max": kl.max()}
    assert expected["mean"] > 1e-3
    assert found["comparison"]["kl"] == pytest.approx(expected, rel=1e-3, abs=1e-6)
    assert found["comparison"]["kl"]["mean"] == pytest.approx(expected["mean"], abs=1e-5)
    assert found["comparison"]["top1_agreement"] == pytest.approx(float((ours.argmax(-1) == base.argmax(-1)).double().mean()))


def test_a_model_equals_itself(trained: Path) -> None:
    found = evaluate(str(trained), EvaluationRequest((text(),), (), str(trained), dtype="float32", max_length=128, keep=False)).as_json()
    assert found["verdict"] == "pass"
    assert found["comparison"]["kl"]["max"] == 0
    assert found["comparison"]["top1_agreement"] == 1
    [judgement] = found["comparison"]["judgements"]
    assert (judgement["low"], judgement["worse"], judgement["high"]) == (0, 0, 0)


def test_a_text_that_is_one_window(trained: Path) -> None:
    sample = Text("short", text().content[:300])
    found = evaluate(str(trained), EvaluationRequest((sample,), (), dtype="float32"))
    table, targets = strided(trained, sample.content, 256, 128)
    assert found.measured is not None
    assert perplexity(found.measured.texts).nats == pytest.approx(-float(table[torch.arange(len(targets)), targets].sum()), rel=1e-5)


def test_logits_are_made_a_slice_at_a_time() -> None:
    """Whatever the number of rows, what is in memory at once is bounded."""
    vocabulary, rows = 50_000, 400
    weight = torch.randn(vocabulary, 4, generator=torch.Generator().manual_seed(1))
    hidden = torch.randn(rows, 4, generator=torch.Generator().manual_seed(2))
    seen: list[int] = []

    def head(part: torch.Tensor) -> torch.Tensor:
        seen.append(len(part))
        return part @ weight.T

    found = token_logprobs(Head(head, vocabulary), hidden, list(range(rows)))
    assert max(seen) * vocabulary * 8 <= 32 << 20
    assert sum(seen) == rows
    assert found == pytest.approx(torch.log_softmax((hidden @ weight.T).double(), -1)[torch.arange(rows), torch.arange(rows)].numpy(), abs=1e-5)


def test_rows_that_pad_the_matrix_are_no_choice() -> None:
    logits = torch.tensor([[1.0, 2.0, 50.0]])
    assert token_logprobs(Head(lambda hidden: logits, 2), torch.zeros(1, 4), [1])[0] == pytest.approx(-math.log1p(math.exp(-1)))
    base = Head(lambda hidden: torch.tensor([[2.0, 1.0, 9.0]]), 3)
    found = token_comparison(Head(lambda hidden: logits, 2), torch.zeros(1, 4), base, torch.zeros(1, 4), [1])
    p, q = torch.softmax(torch.tensor([2.0, 1.0]), 0), torch.softmax(torch.tensor([1.0, 2.0]), 0)
    assert found.divergence[0] == pytest.approx(float((p * (p / q).log()).sum()), rel=1e-6)
    assert not found.agrees[0]
