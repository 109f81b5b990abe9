"""A recorded attention reads the sequences of each run from the same memory."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from headway.kernels.batch import ForwardBatch
from headway.kernels.native.attention import NativeAttention
from headway.kernels.native.step_inputs import StepInputs
from headway.kernels.native.tape import Tape
from headway.kernels.paged_kv import KVShape, PagedKV
from headway.kernels.reference import REFERENCE
from tests.kernels.batches import Chunk, make_batch

HEADS, KV_HEADS, SIZE, BLOCK = 6, 2, 32, 16
STEPS = [
    [Chunk([0] * 40, 40, [3, 1, 7])],
    [Chunk([0], 41, [3, 1, 7])],
    [Chunk([0], 42, [3, 1, 7]), Chunk([0] * 20, 20, [2, 5])],
    [Chunk([0], 21, [2, 5])],
]


def test_every_step_equals_the_reference(tape: Tape) -> None:
    kv, expected_kv = (PagedKV(9, BLOCK, KVShape(1, KV_HEADS, SIZE), torch.float32) for _ in range(2))
    inputs, attention = StepInputs(50, 49, 4, 6, BLOCK), NativeAttention(tape)
    rows = torch.zeros(50, HEADS + 2 * KV_HEADS, SIZE)
    with tape.record(50, 49, 4) as recording:
        plan = attention.plan(inputs.as_batch(), kv, HEADS, frozenset((None,)))
        attention.store(rows[:, HEADS:], kv, 0, plan)
        out = attention.attend(rows[:, :HEADS], kv, 0, plan, None, 0.2, None)
        del plan
    generator = torch.Generator().manual_seed(0)
    for chunks in STEPS:
        batch = make_batch(chunks, BLOCK)
        count = len(batch.slots)
        rows[:count] = torch.randn(count, *rows.shape[1:], generator=generator)
        tokens, outputs, sequences = inputs.load(batch)
        assert (tokens, outputs, sequences) == (count, len(batch.logits_rows), len(chunks))
        recording.run(tokens, outputs, sequences)
        REFERENCE.store(rows[:count, HEADS:], expected_kv, 0, batch)
        expected = REFERENCE.attend(rows[:count, :HEADS], expected_kv, 0, batch, None, 0.2, None)
        torch.testing.assert_close(out[:count], expected, atol=5e-6, rtol=1e-5)


def test_all_of_a_batch_is_copied() -> None:
    inputs = StepInputs(50, 10, 4, 6, BLOCK)
    batch = make_batch([Chunk([8, 9], 42, [3, 1, 7]), Chunk([4] * 20, 20, [2, 5])], BLOCK)
    batch = ForwardBatch(
        batch.token_ids, batch.positions, batch.slots, batch.query_lens, batch.context_lens, batch.block_tables, torch.tensor([1, 21])
    )
    views = inputs.as_batch()
    inputs.load(batch)
    for name in ("token_ids", "positions", "slots", "query_lens", "context_lens", "logits_rows"):
        found = np.asarray(getattr(views, name))[: len(getattr(batch, name))]
        np.testing.assert_array_equal(found, np.asarray(getattr(batch, name)), err_msg=name)
    np.testing.assert_array_equal(views.block_tables[:2, :3], batch.block_tables)


@pytest.mark.parametrize("sizes", [(21, 30, 4, 6), (30, 21, 4, 6), (30, 30, 1, 6), (30, 30, 4, 2)])
def test_what_does_not_fit_is_refused(sizes: tuple[int, int, int, int]) -> None:
    inputs = StepInputs(*sizes, BLOCK)
    batch = make_batch([Chunk([0] * 2, 42, [3, 1, 7]), Chunk([0] * 20, 20, [2, 5])], BLOCK)
    assert not inputs.fits(batch)
    with pytest.raises(ValueError, match="does not fit inputs"):
        inputs.load(batch)
    assert StepInputs(30, 30, 4, 6, BLOCK).fits(batch)
