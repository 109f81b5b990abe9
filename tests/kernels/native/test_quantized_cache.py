"""Keys and values in int8 with a scale for each token and head."""

from __future__ import annotations

import pytest
import torch

from headway.kernels.batch import ForwardBatch
from headway.kernels.native.attention import NativeAttention
from headway.kernels.native.tape import Tape
from headway.kernels.paged_kv import KVShape, PagedKV
from headway.kernels.reference import REFERENCE
from tests.kernels.batches import Chunk, make_batch, scattered_blocks

DTYPES = (torch.float32, torch.bfloat16)
ONE_WINDOW = frozenset((None,))


def batch_of(lengths: list[tuple[int, int]]) -> tuple[ForwardBatch, int]:
    tables, total = scattered_blocks([end for _, end in lengths], 16, 1)
    return make_batch([Chunk([0] * n, end, table) for (n, end), table in zip(lengths, tables, strict=True)], 16), total


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("size", [8, 24, 64])
def test_codes_and_scales_equal_the_reference(tape: Tape, dtype: torch.dtype, size: int) -> None:
    batch, blocks = batch_of([(20, 33), (1, 5), (1, 17)])
    rows = random(22, 4, size).to(dtype)
    rows[3] = 0
    ours = NativeAttention(tape)
    caches = []
    for kernels in (REFERENCE, ours):
        kv = PagedKV(blocks, 16, KVShape(1, 2, size), torch.int8)
        kernels.store(rows, kv, 0, kernels.plan(batch, kv, 2, ONE_WINDOW))
        caches.append(kv)
    assert torch.equal(caches[0].layers[0], caches[1].layers[0])
    assert torch.equal(caches[0].scales[0], caches[1].scales[0])
    # The largest number of a head is 127 times its scale, and no number is off by more than half a scale.
    block, offset = int(batch.slots[0]) // 16, int(batch.slots[0]) % 16
    codes, scales = caches[1].layers[0][0, :, block, offset], caches[1].scales[0][0, :, block, offset]
    assert (codes.abs().amax(-1) == 127).all()
    assert ((codes * scales[:, None] - rows[0, :2].float()).abs() <= scales[:, None] * 0.5001).all()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("lengths", [[(1, 2000)], [(1, 70), (1, 1), (3, 40)], [(100, 300), (7, 60), (1, 500)]], ids=range(3))
@pytest.mark.parametrize("size", [24, 64, 128])
def test_attention_equals_the_reference(tape: Tape, dtype: torch.dtype, lengths: list[tuple[int, int]], size: int) -> None:
    batch, blocks = batch_of(lengths)
    ours = NativeAttention(tape)
    results = []
    for kernels in (REFERENCE, ours):
        kv = PagedKV(blocks, 16, KVShape(1, 2, size), torch.int8)
        kv.layers[0].copy_((random(*kv.layers[0].shape, seed=5) * 40).clamp(-127, 127))
        kv.scales[0].copy_(random(*kv.scales[0].shape, seed=6).abs() / 40)
        rows = random(len(batch.slots), 10, size).to(dtype)
        plan = kernels.plan(batch, kv, 6, ONE_WINDOW)
        kernels.store(rows[:, 6:], kv, 0, plan)
        results.append(kernels.attend(rows[:, :6], kv, 0, plan, None, size**-0.5, 30.0).float())
    # As with keys and values in the dtype of the model: weights (times scales of up to 3 here) are rounded to bfloat16.
    torch.testing.assert_close(results[1], results[0], atol={torch.float32: 1e-5, torch.bfloat16: 0.05}[dtype], rtol=0.0)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_what_is_not_a_number_stays_visible(tape: Tape, dtype: torch.dtype) -> None:
    batch, blocks = batch_of([(5, 5), (5, 5)])
    kv = PagedKV(blocks, 16, KVShape(1, 2, 16), torch.int8)
    rows = random(10, 6, 16).to(dtype)
    rows[2, 3, 7] = float("nan")  # key head 1 of the first sequence
    ours = NativeAttention(tape)
    plan = ours.plan(batch, kv, 2, ONE_WINDOW)
    ours.store(rows[:, 2:], kv, 0, plan)
    found = ours.attend(rows[:, :2], kv, 0, plan, None, 0.2, None).view(10, 2, 16)
    assert found[2:5, 1].isnan().all()
    assert not found[:, 0].isnan().any()
    assert not found[5:].isnan().any()
