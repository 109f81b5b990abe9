"""How much memory a trunk takes for keys and values, and how long a row that leaves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from headway.artifacts.inspect import inspect
from headway.errors import CapacityError
from headway.host.memory_budget import memory_budget
from headway.runtime.decoder import loading
from headway.runtime.decoder.loading import load_trunk
from headway.runtime.decoder.trunk import BLOCK_SIZE
from tests.models.tiny_models import tiny_model
from tests.runtime.decoder.trunks import label_row, tokens

PER_TOKEN = 2 * 3 * 2 * 16 * 4  # key and value, layers, key heads, head size, bytes of float32


def _available(monkeypatch: pytest.MonkeyPatch, nbytes: int) -> None:
    real = memory_budget()
    monkeypatch.setattr(loading, "memory_budget", lambda: replace(real, available=nbytes))


def test_a_row_is_as_long_as_the_model_and_the_caller_allow(root: Path) -> None:
    card = inspect(str(tiny_model("smollm", root).folder))
    stated, asked = load_trunk(card, "float32", share=True), load_trunk(card, "bfloat16", share=True, max_tokens=100)
    assert (stated.max_tokens, asked.max_tokens, load_trunk(card, "float32", share=True, max_tokens=9999).max_tokens) == (256, 100, 256)
    assert stated.cache_bytes == (4 * 256 // BLOCK_SIZE + 1) * BLOCK_SIZE * PER_TOKEN
    assert stated.memory_bytes == 2 * asked.memory_bytes == 4 * card.parameters
    assert asked.model.dtype == torch.bfloat16


def test_rows_are_no_longer_than_what_the_memory_can_hold(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    card = inspect(str(tiny_model("smollm", root).folder))
    _available(monkeypatch, 8 * PER_TOKEN * (5 * BLOCK_SIZE + 3))
    trunk = load_trunk(card, "float32", share=True)
    assert trunk.max_tokens == 5 * BLOCK_SIZE
    trunk.read([label_row(tokens(1, 80)), label_row(tokens(2, 80))])
    with pytest.raises(ValueError, match="81 tokens, expected 1 to 80"):
        trunk.read([label_row(tokens(1, 81))])


def test_no_memory_at_all_is_said(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    card = inspect(str(tiny_model("smollm", root).folder))
    _available(monkeypatch, 8 * PER_TOKEN * (BLOCK_SIZE - 1))
    with pytest.raises(CapacityError, match="no memory is left for keys and values") as error:
        load_trunk(card, "float32", share=True)
    assert error.value.reason == "no_memory_for_kv"
