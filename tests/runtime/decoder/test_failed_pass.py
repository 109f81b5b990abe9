"""What goes wrong in a forward pass stays there: blocks come back, and nobody reads what was not computed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from headway.kernels.batch import ForwardBatch
from headway.kernels.paged_kv import PagedKV
from headway.runtime.row import ItemFailure
from tests.runtime.decoder.trunks import label_row, model_of, tokens, trunk_on


class _Breaks:
    """A model whose forward pass raises in one step, or makes NaN of all that sees a token."""

    def __init__(self, model: Any, *, step: int = 0, poison: int | None = None):
        self._model = model
        self._step = step
        self._poison = poison
        self.steps = 0
        self.config, self.dtype, self.logits = model.config, model.dtype, model.logits

    def __call__(self, batch: ForwardBatch, kv: PagedKV) -> torch.Tensor:
        self.steps += 1
        if self.steps == self._step:
            # Half of the work is done: what it left behind must not be found.
            self._model(batch, kv)
            for layer in kv.layers:
                layer.view(layer.shape[0], layer.shape[1], -1, layer.shape[-1])[:, :, batch.slots] = torch.nan
            raise RuntimeError("the step broke")
        out = self._model(batch, kv)
        assert isinstance(out, torch.Tensor)
        return out


def test_an_exception_gives_all_blocks_back_and_leaves_nothing_behind(root: Path) -> None:
    model = model_of("smollm", root)
    state = tokens(1, 300)
    rows = [label_row(state + tokens(i, 9)) for i in range(2, 5)]
    expected = trunk_on(model, share=False).read(rows)
    trunk = trunk_on(_Breaks(model, step=3), step_tokens=128)
    with pytest.raises(RuntimeError, match="the step broke"):
        trunk.read(rows)
    assert trunk.held_blocks == 0
    computed = trunk.counts.computed_tokens
    for found, right in zip(trunk.read(rows), expected, strict=True):
        assert np.abs(found - right).max() < 1e-4
    assert trunk.counts.computed_tokens - computed >= 300 + 3 * 9  # nothing of the broken pass was taken over


def test_numbers_that_are_not_finite_fail_their_row_only(root: Path) -> None:
    """Token 5 is poison: its embedding is NaN. Rows that share the start with a poisoned one are right, in any order."""
    model = model_of("smollm", root)
    clean = model.embedding.weight[5].clone()
    state = tokens(1, 64)
    state = tuple(token if token != 5 else 6 for token in state)
    good = [label_row((*state, 9, 10 + i)) for i in range(3)]
    expected = trunk_on(model, share=False).read(good)
    bad = [label_row((*state, 5, 9)), label_row((5, *state)), label_row((5, *state, 8))]
    trunk = trunk_on(model, cache_tokens=400, step_tokens=90)
    try:
        model.embedding.weight[5] = torch.nan
        for rows in ([*bad, *good], [*good, *bad], [good[0], bad[0], good[1], bad[1], bad[2], good[2]]):
            found = trunk.read(rows)
            for row, outcome in zip(rows, found, strict=True):
                if row in bad:
                    assert isinstance(outcome, ItemFailure)
                    assert outcome.code == "invalid_model_output"
                else:
                    assert np.abs(outcome - expected[good.index(row)]).max() < 1e-4
            assert trunk.held_blocks == 0
            assert all(bool(torch.isfinite(layer).all()) for layer in trunk._kv.layers)
    finally:
        model.embedding.weight[5] = clean
