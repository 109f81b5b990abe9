"""The real SmolLM2 135M (GGUF Q4_1) against transformers, which dequantizes the same file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from transformers import AutoTokenizer

from headway.artifacts.inspect import inspect
from headway.artifacts.resolve import resolve
from headway.models.load import load_model
from tests.models.gguf_oracle import gguf_oracle
from tests.models.runs import greedy, in_chunks

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("unrounded")]

PROMPT = "The capital of France is Paris. The capital of Italy is Rome. Write about the history of both cities:"


@dataclass(frozen=True)
class Real:
    reference: str
    oracle: Any
    tokens: list[int]


@pytest.fixture(scope="module")
def real() -> Real:
    path = resolve("smollm2-135m-instruct")
    tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    return Real(str(path), gguf_oracle(path), tokenizer(PROMPT)["input_ids"])


def test_float32_logits_and_progress(real: Real) -> None:
    seen: list[tuple[int, int]] = []
    card = inspect(real.reference)
    model = load_model(card, torch.float32, progress=lambda done, total: seen.append((done, total)))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1] == (card.weight_bytes, card.weight_bytes)
    with torch.no_grad():
        expected = real.oracle(torch.tensor([real.tokens])).logits[0]
    for size in (len(real.tokens), 7):
        assert (in_chunks(model, real.tokens, size) - expected).abs().max() <= 1e-3  # logits up to 30


def test_float32_greedy_tokens(real: Real) -> None:
    model = load_model(inspect(real.reference), torch.float32)
    count = 24
    with torch.no_grad():
        out = real.oracle.generate(
            torch.tensor([real.tokens]), max_new_tokens=count, min_new_tokens=count, do_sample=False
        )
    assert greedy(model, real.tokens, count, never=2) == out[0, len(real.tokens) :].tolist()


def test_bfloat16_predicts_like_float32(real: Real) -> None:
    model = load_model(inspect(real.reference), torch.bfloat16)
    with torch.no_grad():
        expected = real.oracle(torch.tensor([real.tokens])).logits[0].log_softmax(-1)
    ours = in_chunks(model, real.tokens, 16).log_softmax(-1)
    divergence = (expected.exp() * (expected - ours)).sum(-1)
    assert divergence.mean() < 0.02
