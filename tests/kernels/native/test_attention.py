"""Paged attention, and writing keys and values, against the reference."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headway.kernels.batch import ForwardBatch
from headway.kernels.interface import reach
from headway.kernels.native.attention import NativeAttention
from headway.kernels.native.tape import Tape
from headway.kernels.paged_kv import KVShape, PagedKV
from headway.kernels.reference import REFERENCE
from tests.kernels.batches import Chunk, make_batch, scattered_blocks

# float32: sums of up to a few hundred products in another order. bfloat16: weights are rounded, and results may be rounded to the one
# neighbour or the other, which are 0.031 apart for the largest numbers that there are (4 to 8, times the spread).
TOLERANCE = {torch.float32: 8e-6, torch.bfloat16: 0.035}


@dataclass(frozen=True)
class Case:
    """(new tokens, context) of each sequence."""

    lengths: list[tuple[int, int]]
    kv_heads: int = 2
    group: int = 3
    size: int = 16
    block_size: int = 16
    window: int | None = None
    softcap: float | None = None
    biased: bool = False
    spread: float = 1.0

    @property
    def heads(self) -> int:
        return self.kv_heads * self.group


def tolerance(case: Case, dtype: torch.dtype) -> float:
    # Neighbours among float32 scores are 1.2e-7 of their size apart; so far apart are weights, and numbers that are some times `spread`,
    # weighted. With a bias scores are as large as the context is long.
    largest = 8 * case.spread**2 + (max(end for _, end in case.lengths) if case.biased else 0)
    rounding = 1.2e-7 * largest
    return (TOLERANCE[dtype] + 3 * rounding) * case.spread


def batch_of(case: Case, seed: int = 1) -> tuple[ForwardBatch, int]:
    tables, total = scattered_blocks([end for _, end in case.lengths], case.block_size, seed)
    chunks = [Chunk([0] * count, end, table) for (count, end), table in zip(case.lengths, tables, strict=True)]
    return make_batch(chunks, case.block_size), total


def difference(tape: Tape, case: Case, dtype: torch.dtype, seed: int = 0) -> float:
    """The largest one between native and reference, after the same keys and values were stored by each; these must be equal."""
    generator = torch.Generator().manual_seed(seed)
    batch, blocks = batch_of(case)
    shape = KVShape(2, case.kv_heads, case.size)
    rows = torch.randn(len(batch.slots), case.heads + 2 * case.kv_heads, case.size, generator=generator) * case.spread
    bias = torch.rand(case.heads, 1, generator=generator) * torch.arange(reach(int(batch.context_lens.max()), case.block_size))
    content = torch.randn(2, case.kv_heads, blocks, case.block_size, case.size, generator=generator)
    results, caches = [], []
    ours = NativeAttention(tape)
    for kernels in (REFERENCE, ours):
        kv = PagedKV(blocks, case.block_size, shape, dtype)
        kv.layers[1].copy_(content)
        plan = kernels.plan(batch, kv, case.heads, frozenset((case.window,)))
        kernels.store(rows.to(dtype)[:, case.heads :], kv, 1, plan)
        query = rows.to(dtype)[:, : case.heads]
        results.append(
            kernels.attend(query, kv, 1, plan, case.window, case.size**-0.5, case.softcap, bias if case.biased else None)
        )
        caches.append(kv.layers[1])
    assert torch.equal(caches[0], caches[1])
    assert results[1].shape == results[0].shape
    assert results[1].dtype == dtype
    return float((results[0].float() - results[1].float()).abs().max())


@st.composite
def cases(draw: st.DrawFn) -> Case:
    pair = st.integers(1, 150).flatmap(lambda end: st.tuples(st.one_of(st.just(1), st.integers(1, end)), st.just(end)))
    biased = draw(st.booleans())
    return Case(
        lengths=draw(st.lists(pair, min_size=1, max_size=6)),
        kv_heads=draw(st.integers(1, 3)),
        group=draw(st.sampled_from((1, 2, 3, 4, 5, 8, 9, 17))),
        size=draw(st.sampled_from((2, 6, 16, 24, 30, 32, 40, 64, 80))),
        block_size=draw(st.sampled_from((1, 5, 8, 16, 32))),
        window=None if biased else draw(st.one_of(st.none(), st.integers(1, 160))),
        softcap=draw(st.sampled_from((None, 0.5, 30.0))),
        biased=biased,
        spread=draw(st.sampled_from((1.0, 4.0))),
    )


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=cases())
def test_any_mixture_equals_the_reference(tape: Tape, dtype: torch.dtype, case: Case) -> None:
    assert difference(tape, case, dtype) <= tolerance(case, dtype)


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("case", [
    Case([(1, 3000)], 1, 3, 64),  # both members on one sequence
    Case([(1, 5000), (1, 40), (1, 2000)], 1, 1, 64),
    Case([(20, 3000)], 1, 3, 64),
    Case([(400, 400)], 2, 1, 64),
    Case([(300, 700), (1, 900), (2, 64), (7, 500)], 2, 3, 64),
    Case([(1, 700), (60, 900)], 2, 4, 128, 128),
    Case([(1, 700), (60, 300)], 1, 2, 256, 8),
    Case([(1, 2500), (100, 2500)], 1, 2, 64, 16, window=1000),
    Case([(1, 2500), (100, 2500)], 1, 2, 64, 16, biased=True, softcap=5.0),
    Case([(1, 10 + 9 * i) for i in range(40)], 3, 3, 64),
    Case([(1, 1)], 1, 71, 64),
], ids=range(11))  # fmt: skip
def test_work_is_divided_and_joined(tape: Tape, dtype: torch.dtype, case: Case) -> None:
    assert difference(tape, case, dtype) <= tolerance(case, dtype)


def test_sequences_that_share_blocks_see_the_keys_of_this_very_batch(tape: Tape) -> None:
    shared = [5, 2, 8]
    batch = make_batch([Chunk([0] * 48, 48, shared), Chunk([0], 49, [*shared, 6])], 16)
    rows = torch.randn(49, 8, 32, generator=torch.Generator().manual_seed(0))
    results = []
    ours = NativeAttention(tape)
    for kernels in (REFERENCE, ours):
        kv = PagedKV(10, 16, KVShape(1, 2, 32), torch.float32)
        plan = kernels.plan(batch, kv, 4, frozenset((None,)))
        kernels.store(rows[:, 4:], kv, 0, plan)
        results.append(kernels.attend(rows[:, :4], kv, 0, plan, None, 0.2, None))
    torch.testing.assert_close(results[1], results[0], atol=5e-6, rtol=1e-5)


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("count", [1, 30])
def test_what_is_not_a_number_stays_visible(tape: Tape, dtype: torch.dtype, count: int) -> None:
    """In the results of the sequence that has it, nowhere else."""
    batch, blocks = batch_of(Case([(count, 60), (count, 60)]))
    ours = NativeAttention(tape)
    query = torch.ones(2 * count, 4, 16).to(dtype)
    for part in (0, 1):
        kv = PagedKV(blocks, 16, KVShape(1, 2, 16), dtype)
        kv.layers[0][part, :, batch.block_tables[0, 1], 3] = float("nan")
        found = ours.attend(query, kv, 0, ours.plan(batch, kv, 4, frozenset((None,))), None, 0.2, None)
        assert found[:count].isnan().all()
        assert not found[count:].isnan().any()


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize(("size", "turning"), [(16, 16), (64, 64), (64, 32), (40, 40), (6, 4)])
def test_rotation_and_store_in_one_call(tape: Tape, dtype: torch.dtype, size: int, turning: int) -> None:
    heads, kv_heads = 3, 2
    batch, blocks = batch_of(Case([(9, 40), (1, 17)]))
    generator = torch.Generator().manual_seed(3)
    angles = torch.rand(10, 1, turning // 2, generator=generator) * 6
    cos = torch.cat((angles.cos(), angles.cos()), -1).to(dtype)
    sin = torch.cat((-angles.sin(), angles.sin()), -1).to(dtype)
    rows = torch.randn(10, heads + 2 * kv_heads, size, generator=generator).to(dtype)
    expected, expected_kv = rows.clone(), PagedKV(blocks, 16, KVShape(1, kv_heads, size), dtype)
    REFERENCE.rotate(expected[:, : heads + kv_heads, :turning], cos, sin)
    REFERENCE.store(expected[:, heads:], expected_kv, 0, batch)
    kv, ours = PagedKV(blocks, 16, KVShape(1, kv_heads, size), dtype), NativeAttention(tape)
    ours.rotate_and_store(rows, heads, cos, sin, kv, 0, ours.plan(batch, kv, heads, frozenset((None,))))
    # The reference rounds two products, the kernel one; in bfloat16 that may be one step of numbers up to 4.
    close = {"atol": 1e-6, "rtol": 1e-6} if dtype is torch.float32 else {"atol": 0.016, "rtol": 0.0}
    torch.testing.assert_close(rows[:, :heads], expected[:, :heads], **close)
    torch.testing.assert_close(kv.layers[0], expected_kv.layers[0], **close)
    assert torch.equal(kv.layers[0][1], expected_kv.layers[0][1])  # values do not turn
