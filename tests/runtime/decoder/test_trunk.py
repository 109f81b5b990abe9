"""What a trunk reads equals what transformers computes: alone, together, in steps, shared or not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from headway.runtime.decoder.trunk import DecoderTrunk
from headway.runtime.decoder.wanted import HiddenAt, LabelLogits
from headway.runtime.row import Row
from tests.models.tiny_models import tiny_model
from tests.runtime.decoder.trunks import (
    expected_hidden,
    expected_labels,
    hidden_row,
    label_row,
    model_of,
    tokens,
    trunk_on,
)

ARCHITECTURES = ("smollm", "qwen3", "gemma3", "gpt2")


@pytest.mark.parametrize("name", ARCHITECTURES)
@pytest.mark.parametrize("step_tokens", [2048, 33], ids=["one-step", "steps"])
def test_label_logits_are_those_of_transformers(root: Path, name: str, step_tokens: int) -> None:
    oracle = tiny_model(name, root)
    rows = [tokens(seed, length) for seed, length in ((1, 90), (2, 1), (3, 17), (4, 64))]
    found = trunk_on(model_of(name, root), step_tokens=step_tokens).read([label_row(row) for row in rows])
    for outcome, row in zip(found, rows, strict=True):
        assert outcome.dtype == np.float32
        assert np.abs(outcome - expected_labels(oracle, row)).max() < 2e-4


@pytest.mark.parametrize("step_tokens", [2048, 20], ids=["one-step", "steps"])
def test_hidden_states_come_in_the_order_asked(root: Path, step_tokens: int) -> None:
    oracle = tiny_model("qwen3", root)
    row = tokens(5, 80)
    positions = (79, 0, 41, 41, 19, 20)
    (found,) = trunk_on(model_of("qwen3", root), step_tokens=step_tokens).read([hidden_row(row, *positions)])
    assert found.shape == (6, 64)
    assert np.abs(found - expected_hidden(oracle, row)[list(positions)]).max() < 2e-4


def test_readouts_may_be_mixed(root: Path) -> None:
    oracle = tiny_model("smollm", root)
    row = tokens(6, 50)
    labels, hidden = trunk_on(model_of("smollm", root)).read([label_row(row), hidden_row(row)])
    assert np.abs(labels - expected_labels(oracle, row)).max() < 2e-4
    assert np.abs(hidden[0] - expected_hidden(oracle, row)[-1]).max() < 2e-4


def test_bfloat16_stays_near(root: Path) -> None:
    rows = [hidden_row(tokens(seed, 60)) for seed in (1, 2)]
    exact = trunk_on(model_of("smollm", root)).read(rows)
    rough = trunk_on(model_of("smollm", root, torch.bfloat16)).read(rows)
    for a, b in zip(exact, rough, strict=True):
        assert b.dtype == np.float32
        assert float((a * b).sum() / np.linalg.norm(a) / np.linalg.norm(b)) > 0.999
        assert np.abs(a - b).max() > 0


def test_padding_of_the_vocabulary_counts_for_nothing(root: Path) -> None:
    model = model_of("smollm", root)
    row = tokens(7, 30)
    trunk = DecoderTrunk(model, max_tokens=64, cache_tokens=64, share=False, known_tokens=151)
    logits = tiny_model("smollm", root).logits(list(row))[-1, :151]
    (found,) = trunk.read([label_row(row)])
    assert found[-2] == pytest.approx(float(logits.logsumexp(0)), abs=2e-4)
    assert found[-1] == pytest.approx(float(logits.max()), abs=2e-4)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (Row((), "x", LabelLogits((1,))), "0 tokens, expected 1 to 400"),
        (Row((5,) * 401, "x", LabelLogits((1,))), "401 tokens, expected 1 to 400"),
        (Row((5, 6), "decide"), "'decide' has the detail None"),
        (Row((5, 6), "x", HiddenAt((2,))), "are asked of a row of 2 tokens"),
        (Row((5, 6), "x", HiddenAt((-1,))), "are asked of a row of 2 tokens"),
        (Row((5, 6), "x", HiddenAt(())), "are asked of a row of 2 tokens"),
    ],
)  # fmt: skip
def test_rows_that_nobody_can_read_are_refused_before_anything_runs(root: Path, row: Row, said: str) -> None:
    trunk = trunk_on(model_of("smollm", root))
    with pytest.raises(ValueError, match=said):
        trunk.read([label_row(tokens(1, 5)), row])
    assert trunk.counts.steps == 0


def test_without_a_head_there_are_no_logits(root: Path) -> None:
    trunk = DecoderTrunk(model_of("smollm", root), max_tokens=64, cache_tokens=64, share=False, has_head=False)
    with pytest.raises(ValueError, match="without its output head"):
        trunk.read([label_row((5, 6))])
