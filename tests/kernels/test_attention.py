"""Batched paged attention against the reference, and how many operator calls it makes."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.kernels import attention_tiles
from headway.kernels.batch import ForwardBatch
from headway.kernels.interface import Kernels
from headway.kernels.paged_kv import KVShape, PagedKV
from headway.kernels.reference import REFERENCE
from headway.kernels.torch_backend import TORCH
from tests.kernels.batches import Chunk, make_batch, scattered_blocks
from tests.kernels.counted_calls import CountedCalls

BLOCK = 4


def run(
    kernels: Kernels, batch: ForwardBatch, kv: PagedKV, heads: int, window: int | None, softcap: float | None = None,
    seed: int = 0,
) -> torch.Tensor:  # fmt: skip
    """Store random rows for the new tokens in layer 1 and attend with random queries."""
    generator = torch.Generator().manual_seed(seed)
    shape = kv.shape
    rows = torch.randn(len(batch.slots), heads + 2 * shape.num_kv_heads, shape.head_dim, generator=generator).to(
        kv.dtype
    )
    plan = kernels.plan(batch, kv, heads, frozenset((None, window)))
    kernels.store(rows[:, heads:], kv, 1, plan)
    return kernels.attend(rows[:, :heads], kv, 1, plan, window, 0.3, softcap)


def filled_cache(blocks: int, shape: KVShape, dtype: torch.dtype = torch.float32) -> PagedKV:
    kv = PagedKV(blocks, BLOCK, shape, dtype)
    generator = torch.Generator().manual_seed(7)
    for layer in kv.layers:
        layer.copy_(torch.randn(layer.shape, generator=generator))
    return kv


@st.composite
def mixtures(draw: st.DrawFn) -> tuple[list[tuple[int, int]], int, int, int | None, float | None]:
    """(query, context) lengths, kv heads, heads per kv head, window, softcap."""
    pair = st.integers(1, 90).flatmap(lambda end: st.tuples(st.one_of(st.just(1), st.integers(1, end)), st.just(end)))
    return (
        draw(st.lists(pair, min_size=1, max_size=9)),
        draw(st.integers(1, 3)),
        draw(st.integers(1, 3)),
        draw(st.one_of(st.none(), st.integers(1, 40))),
        draw(st.sampled_from((None, 0.5, 50.0))),
    )


@settings(max_examples=120, deadline=None)
@given(mixtures())
def test_any_mixture_equals_the_reference(
    mixture: tuple[list[tuple[int, int]], int, int, int | None, float | None]
) -> None:
    lengths, kv_heads, group, window, softcap = mixture
    tables, total = scattered_blocks([end for _, end in lengths], BLOCK, seed=len(lengths))
    batch = make_batch(
        [Chunk([0] * count, end, table) for (count, end), table in zip(lengths, tables, strict=True)], BLOCK
    )
    results, caches = [], []
    for kernels in (REFERENCE, TORCH):
        kv = filled_cache(total, KVShape(2, kv_heads, 8))
        results.append(run(kernels, batch, kv, kv_heads * group, window, softcap))
        caches.append(kv)
    torch.testing.assert_close(results[1], results[0], atol=2e-6, rtol=1e-5)
    for ours, reference in zip(caches[1].layers, caches[0].layers, strict=True):
        assert torch.equal(ours, reference)


@pytest.mark.parametrize(("tile", "window"), [(16, None), (64, None), (16, 7), (64, 30)])
def test_long_chunks_in_tiles_equal_the_reference(
    monkeypatch: pytest.MonkeyPatch, tile: int, window: int | None
) -> None:
    monkeypatch.setattr(attention_tiles, "_MOST_QUERIES", tile)
    lengths = [(150, 150), (140, 333), (129, 140), (1, 9)]
    tables, total = scattered_blocks([end for _, end in lengths], BLOCK, seed=1)
    batch = make_batch(
        [Chunk([0] * count, end, table) for (count, end), table in zip(lengths, tables, strict=True)], BLOCK
    )
    reference, ours = (run(k, batch, filled_cache(total, KVShape(2, 2, 8)), 4, window) for k in (REFERENCE, TORCH))
    torch.testing.assert_close(ours, reference, atol=2e-6, rtol=1e-5)


def test_bfloat16_is_as_close_as_its_rounding_allows() -> None:
    lengths = [(1, 200), (1, 190), (40, 40)]
    tables, total = scattered_blocks([end for _, end in lengths], BLOCK, seed=2)
    batch = make_batch(
        [Chunk([0] * count, end, table) for (count, end), table in zip(lengths, tables, strict=True)], BLOCK
    )
    shape = KVShape(2, 3, 64)
    reference, ours = (run(k, batch, filled_cache(total, shape, torch.bfloat16), 9, None) for k in (REFERENCE, TORCH))
    torch.testing.assert_close(ours, reference, atol=0.03, rtol=0.03)


def test_the_softcap_bounds_scores_before_the_mask() -> None:
    """Against torch's own attention over the whole sequence, with the capped scores written out."""
    kv, batch = PagedKV(3, BLOCK, KVShape(2, 1, 8), torch.float32), make_batch([Chunk([0] * 9, 9, [2, 0, 1])], BLOCK)
    rows = torch.randn(9, 4, 8, generator=torch.Generator().manual_seed(0)).mul_(4)  # scores far beyond the cap
    scores = rows[:, :2].transpose(0, 1) @ rows[:, 2].T * 0.3
    hidden = torch.ones(9, 9, dtype=torch.bool).triu(1)
    expected = (2 * torch.tanh(scores / 2)).masked_fill(hidden, float("-inf")).softmax(-1) @ rows[:, 3]
    for kernels in (REFERENCE, TORCH):
        plan = kernels.plan(batch, kv, 2, frozenset((None,)))
        kernels.store(rows[:, 2:], kv, 1, plan)
        found = kernels.attend(rows[:, :2], kv, 1, plan, None, 0.3, 2.0)
        torch.testing.assert_close(found, expected.transpose(0, 1).flatten(1))


def test_sequences_that_share_blocks_in_one_batch_see_the_same_keys() -> None:
    shared = [5, 2, 8]
    first, second = Chunk([0] * 12, 12, shared), Chunk([0], 13, [*shared, 6])
    batch = make_batch([first, second], BLOCK)
    reference, ours = (run(k, batch, filled_cache(10, KVShape(2, 2, 8)), 4, None) for k in (REFERENCE, TORCH))
    torch.testing.assert_close(ours, reference, atol=2e-6, rtol=1e-5)


def test_padding_reads_zeros_not_uninitialised_memory() -> None:
    tables, total = scattered_blocks([3, 30], BLOCK, seed=3)
    batch = make_batch([Chunk([0], 3, tables[0]), Chunk([0], 30, tables[1])], BLOCK)
    kv = PagedKV(total, BLOCK, KVShape(2, 1, 8), torch.float32)
    assert torch.isfinite(run(TORCH, batch, kv, 2, None)).all()


def counted(lengths: list[tuple[int, int]]) -> Counter[str]:
    tables, total = scattered_blocks([end for _, end in lengths], BLOCK, seed=4)
    batch = make_batch(
        [Chunk([0] * count, end, table) for (count, end), table in zip(lengths, tables, strict=True)], BLOCK
    )
    kv = filled_cache(total, KVShape(2, 2, 8))
    plan = TORCH.plan(batch, kv, 4, frozenset((None,)))
    query = torch.randn(len(batch.slots), 4, 8)
    with CountedCalls() as counter:
        TORCH.attend(query, kv, 1, plan, None, 0.3, None)
    return counter.calls


def test_calls_depend_on_groups_not_on_sequences() -> None:
    one, many = counted([(1, 40)]), counted([(1, 40 - i % 8) for i in range(60)])
    assert many["bmm"] == one["bmm"] == 1
    assert many.total() <= one.total() + 3
    mixed = counted([(1, 30 + i) for i in range(30)] + [(20 + i % 12, 40) for i in range(20)])
    assert mixed["bmm"] == 2
    assert counted([(1, 10)] * 20 + [(1, 900)] * 3)["bmm"] == 2  # too unlike to pad
