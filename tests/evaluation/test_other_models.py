"""Models that transformers runs, and a baseline with another tokenizer."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, OlmoConfig

from headway.evaluation.evaluate import evaluate
from headway.evaluation.request import EvaluationRequest
from headway.evaluation.text_results import TextResult, perplexity, perplexity_increase
from headway.evaluation.texts import Text
from headway.evaluation.tokenized_text import TokenizedText
from tests.artifacts.trained_tokenizers import save
from tests.evaluation.trained_model import text


def random_model(home: Path, tokenizer: str, seed: int) -> Path:
    """OLMo, which Headway runs through transformers."""
    save(tokenizer, home)
    torch.manual_seed(seed)
    config = OlmoConfig(vocab_size=600, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=2, max_position_embeddings=128)
    AutoModelForCausalLM.from_config(config, dtype=torch.float32).save_pretrained(home)
    return home


def request(against: Path) -> EvaluationRequest:
    return EvaluationRequest((Text("t", text().content[:900]),), (), str(against), dtype="float32", max_length=96)


def test_a_model_of_transformers(tmp_path: Path) -> None:
    one, other = random_model(tmp_path / "a", "byte_level", 1), random_model(tmp_path / "b", "byte_level", 2)
    itself = evaluate(str(one), request(one)).as_json()["comparison"]
    assert (itself["kl"]["max"], itself["top1_agreement"]) == (0, 1)
    assert evaluate(str(other), request(one)).as_json()["comparison"]["kl"]["mean"] > 0


def test_another_tokenizer(tmp_path: Path) -> None:
    one, other = random_model(tmp_path / "a", "byte_level", 1), random_model(tmp_path / "b", "llama", 1)
    found = evaluate(str(other), request(one))
    assert found.comparison is not None
    assert found.comparison.divergence_missing == "the two models have different tokenizers"
    assert found.measured is not None
    assert found.measured.texts[0].text.prefix  # this one begins texts with a token
    assert math.isfinite(found.comparison.judgements[0].worse.value)


def cut(content: str, sizes: list[int], nats: float, prefix: tuple[int, ...] = ()) -> TextResult:
    """Tokens of these many bytes, over and over; `nats` for each byte."""
    ends, place = [], 0
    while place < len(content):
        place = min(place + sizes[len(ends) % len(sizes)], len(content))
        ends.append(place)
    lengths = np.diff([0, *ends]).astype(np.float64)
    first = 0 if prefix else 1
    return TextResult(TokenizedText(Text("t", content), tuple(range(len(ends))), np.array(ends), prefix), -nats * lengths[first:])


def test_models_with_different_tokens_are_compared_by_the_tokens_of_the_baseline() -> None:
    """Both begin with a token of their own, so both score all bytes."""
    content = "x" * 5120
    base, other = cut(content, [4], 0.5, (1,)), cut(content, [3, 7, 2], 0.55, (1,))
    found = perplexity_increase([other], [base])
    assert found.value == pytest.approx(math.exp(0.05 * 4) - 1)  # a token of the baseline is 4 bytes
    assert found.low <= found.value <= found.high
    assert found.high - found.low < 0.05  # tokens that reach over the ends of stretches blur it a little
    assert perplexity([base]).per_token == pytest.approx(math.exp(2))
    assert perplexity([other]).per_byte == pytest.approx(math.exp(0.55))


def test_bytes_of_a_token_that_is_not_scored_do_not_count() -> None:
    found = perplexity([cut("x" * 100, [4], 0.5)])
    assert (found.tokens, found.nbytes) == (24, 96)
    assert found.per_byte == pytest.approx(math.exp(0.5))
