"""The real all-MiniLM-L6-v2 against transformers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from headway.artifacts.resolve import resolve
from headway.kernels.integer_reference import reference_integers
from headway.kernels.native.backend import native_kernels
from headway.kernels.native.library import native_library
from headway.kernels.packed_batch import pack
from headway.kernels.torch_backend import TORCH
from headway.models.encoders.load import load_encoder
from headway.models.held_bytes import held_bytes
from tests.models.encoders.rows import part

pytestmark = pytest.mark.e2e

TEXTS = (
    "The cat sat on the mat.", "Rain.", "Wie spät ist es?", "日本語の文", "Emoji 🙂 and numbers 3.14",
    "A longer text about the history of both cities, their rivers, bridges and markets. " * 12,
)  # fmt: skip


@pytest.fixture(scope="module")
def folder() -> Path:
    return Path(resolve("all-minilm-l6-v2"))


@pytest.fixture(scope="module")
def rows(folder: Path) -> list[list[int]]:
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    return [tokenizer(text)["input_ids"] for text in TEXTS]


@pytest.fixture(scope="module")
def oracle(folder: Path) -> Any:
    return AutoModel.from_pretrained(folder).eval()


def test_float32_states(folder: Path, rows: list[list[int]], oracle: Any) -> None:
    batch = pack(rows)
    found = load_encoder(folder, torch.float32).encode(batch).last
    for number, row in enumerate(rows):
        with torch.no_grad():
            expected = oracle(torch.tensor([row])).last_hidden_state[0]
        assert (part(found, batch, number) - expected).abs().max() <= 1e-4


def test_bfloat16_means(folder: Path, rows: list[list[int]], oracle: Any) -> None:
    batch = pack(rows)
    found = load_encoder(folder, torch.bfloat16).encode(batch).last
    for number, row in enumerate(rows):
        with torch.no_grad():
            expected = oracle(torch.tensor([row])).last_hidden_state[0].mean(0)
        assert torch.cosine_similarity(part(found, batch, number).float().mean(0), expected, dim=0) >= 0.999


@pytest.mark.parametrize("kernels", ["rounded", *native_library().sets])
def test_int8_means(kernels: str, folder: Path, rows: list[list[int]], oracle: Any) -> None:
    built = native_kernels(kernels, 1) if kernels != "rounded" else replace(TORCH, integers=reference_integers(32))
    batch = pack(rows)
    encoder = load_encoder(folder, torch.bfloat16, built, int8=True)
    found = encoder.encode(batch).last
    for number, row in enumerate(rows):
        with torch.no_grad():
            expected = oracle(torch.tensor([row])).last_hidden_state[0].mean(0)
        assert torch.cosine_similarity(part(found, batch, number).float().mean(0), expected, dim=0) >= 0.999
    assert held_bytes(encoder) < 0.8 * held_bytes(load_encoder(folder, torch.bfloat16, TORCH))
