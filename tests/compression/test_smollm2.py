"""A real model: awq and gptq stay closer to it than rounding to the nearest, with groups of the same size, on text that they did not see.

The numbers are printed; `pytest -s` shows them.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from headway.artifacts.inspect import inspect
from headway.artifacts.tokenizer import load_tokenizer
from headway.compression.method import METHODS
from headway.compression.request import QuantizeRequest
from headway.compression.run import quantize
from headway.models.load import load_model
from tests.models.runs import in_chunks

MODEL = "smollm2-135m-instruct"
WINDOW = 256
HELD_OUT = ("CHANGELOG.md", "docs/benchmarks.md", "docs/configuration.md", "docs/vllm-sr-differences.md")
"""Pages of which nothing is among the texts that come along."""


def divergence(folder: Path, texts: list[list[int]], original: list[torch.Tensor]) -> float:
    """Mean over tokens of KL(original || compressed), in nats."""
    model = load_model(inspect(str(folder)), torch.float32)
    total = [((there.exp() * (there - in_chunks(model, text, WINDOW).log_softmax(-1))).sum(-1)) for text, there in zip(texts, original, strict=True)]
    return float(torch.cat(total).mean())


@pytest.mark.long
@pytest.mark.timeout(2400)
def test_closer_than_the_nearest(tmp_path: Path) -> None:
    card = inspect(MODEL)
    tokenizer = load_tokenizer(card)
    root = Path(__file__).parents[2]
    texts = [tokenizer.encode((root / name).read_text())[:WINDOW] for name in HELD_OUT]
    dense = load_model(card, torch.float32)
    original = [in_chunks(dense, text, WINDOW).log_softmax(-1) for text in texts]
    found = {}
    zeros = replace(METHODS["int4-g128"], name="int4-g128 with zero points", symmetric=False)
    for method in (METHODS["int4-g128"], zeros, METHODS["gptq"], METHODS["awq"]):
        report = quantize(card, QuantizeRequest(method, tmp_path / method.name, samples=48, length=128))
        assert report.group_size == 64
        found[method.name] = divergence(tmp_path / method.name, texts, original)
        print(f"\n{method.name}: KL {found[method.name]:.4f} nats per token, {report.matrix_bits:.2f} bits per weight, {report.seconds:.0f} s", end="")
    assert found["gptq"] < 0.9 * found["int4-g128"]
    assert found["awq"] < 0.9 * found["int4-g128"]
    assert found["awq"] < 0.9 * found[zeros.name], "not only because awq has zero points"
