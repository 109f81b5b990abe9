"""Paged attention against the reference: decode steps in parts, prefills in tiles, mixtures of both."""

from __future__ import annotations

from dataclasses import replace

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import HealthCheck, given, settings

from headway.kernels.interface import Kernels, reach
from headway.kernels.paged_kv import KVShape, PagedKV
from headway.kernels.reference import REFERENCE
from headway.kernels.triton import attention_plan
from headway.kernels.triton.attention_plan import split_count
from tests.kernels.batches import Chunk, make_batch, scattered_blocks
from tests.kernels.triton.tolerances import DTYPES, close, randn

BLOCK = 4
Lengths = list[tuple[int, int]]  # new tokens, context with them


def compare(
    kernels: Kernels, device: torch.device, lengths: Lengths, *, kv_heads: int = 2, group: int = 2, size: int = 16,
    dtype: torch.dtype = torch.float32, window: int | None = None, softcap: float | None = None, biased: bool = False,
) -> None:  # fmt: skip
    heads = kv_heads * group
    tables, total = scattered_blocks([end for _, end in lengths], BLOCK, seed=len(lengths))
    batch = make_batch([Chunk([0] * new, end, table) for (new, end), table in zip(lengths, tables, strict=True)], BLOCK)
    theirs, ours = (PagedKV(total, BLOCK, KVShape(2, kv_heads, size), dtype, place) for place in (None, device))
    for mine, other in zip(ours.layers, theirs.layers, strict=True):
        other.copy_(randn(*other.shape, seed=7))
        mine.copy_(other)
    rows = randn(len(batch.slots), heads + 2 * kv_heads, size, dtype=dtype)
    longest = max(end for _, end in lengths)
    bias = randn(heads, reach(longest, BLOCK), seed=3) if biased else None
    REFERENCE.store(rows[:, heads:], theirs, 1, batch)
    wanted = REFERENCE.attend(rows[:, :heads], theirs, 1, batch, window, 0.3, softcap, bias)
    there = rows.to(device)
    plan = kernels.plan(batch.on(device), ours, heads, frozenset((None, window)))
    kernels.store(there[:, heads:], ours, 1, plan)
    close(kernels.attend(there[:, :heads], ours, 1, plan, window, 0.3, softcap, None if bias is None else bias.to(device)), wanted)
    assert torch.equal(ours.layers[1].cpu(), theirs.layers[1])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [16, 64, 80, 96, 128])
def test_sizes_of_heads(kernels: Kernels, device: torch.device, dtype: torch.dtype, size: int) -> None:
    compare(kernels, device, [(1, 9), (3, 7)], kv_heads=1, size=size, dtype=dtype)


@pytest.mark.parametrize("group", [1, 3, 4])
def test_heads_that_share_keys(kernels: Kernels, device: torch.device, group: int) -> None:
    compare(kernels, device, [(1, 5), (2, 2)], group=group)


@pytest.mark.parametrize("options", [{"window": 1}, {"window": 5}, {"window": 400}, {"softcap": 0.5}, {"softcap": 50.0}, {"biased": True}], ids=str)
def test_windows_caps_and_biases(kernels: Kernels, device: torch.device, options: dict[str, float]) -> None:
    compare(kernels, device, [(1, 1), (1, 30), (12, 70), (2, 2)], kv_heads=1, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("window", [None, 90])
def test_a_context_in_parts(kernels: Kernels, device: torch.device, monkeypatch: pytest.MonkeyPatch, window: int | None) -> None:
    """The short sequence has nothing in most parts."""
    monkeypatch.setattr(attention_plan, "_SPLIT_KEYS", 32)
    compare(kernels, device, [(1, 150), (1, 3)], kv_heads=1, window=window, softcap=2.0, biased=window is None)


def test_a_prefix_that_was_computed_before_and_many_tiles(kernels: Kernels, device: torch.device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention_plan, "query_tile", lambda size, dtype: 16)
    compare(kernels, device, [(20, 20), (9, 80), (1, 2)], kv_heads=1, window=11)


def test_sequences_that_share_blocks_in_one_batch(kernels: Kernels, device: torch.device) -> None:
    shared = [5, 2, 8]
    batch = make_batch([Chunk([0] * 12, 12, shared), Chunk([0], 13, [*shared, 6])], BLOCK)
    theirs, ours = (PagedKV(10, BLOCK, KVShape(1, 1, 16), torch.float32, place) for place in (None, device))
    rows = randn(13, 4, 16)
    REFERENCE.store(rows[:, 2:], theirs, 0, batch)
    plan = kernels.plan(batch.on(device), ours, 2, frozenset((None,)))
    kernels.store(rows[:, 2:].to(device), ours, 0, plan)
    close(
        kernels.attend(rows[:, :2].to(device), ours, 0, plan, None, 0.3, None, None),
        REFERENCE.attend(rows[:, :2], theirs, 0, batch, None, 0.3, None, None),
    )


@pytest.mark.parametrize("new", [1, 3])
@pytest.mark.parametrize("split_keys", [256, 32])
def test_a_key_that_is_not_a_number_reaches_who_sees_it_only(
    kernels: Kernels, device: torch.device, monkeypatch: pytest.MonkeyPatch, new: int, split_keys: int
) -> None:
    monkeypatch.setattr(attention_plan, "_SPLIT_KEYS", split_keys)
    batch = make_batch([Chunk([0] * new, 70, list(range(18))), Chunk([0] * new, 70, list(range(18, 36)))], BLOCK)
    kv = PagedKV(36, BLOCK, KVShape(1, 1, 16), torch.float32, device)
    kv.layers[0][0, 0, 3] = float("nan")
    found = kernels.attend(torch.ones(2 * new, 1, 16, device=device), kv, 0, kernels.plan(batch.on(device), kv, 1, frozenset((None,))), None, 0.3, None, None)
    assert found.isnan().all(-1).tolist() == [True] * new + [False] * new


@pytest.mark.parametrize("split_keys", [256, 32])
def test_a_sequence_without_context_gets_zeros(kernels: Kernels, device: torch.device, monkeypatch: pytest.MonkeyPatch, split_keys: int) -> None:
    """A row that pads a captured step."""
    monkeypatch.setattr(attention_plan, "_SPLIT_KEYS", split_keys)
    kv = PagedKV(18, BLOCK, KVShape(1, 1, 16), torch.float32, device)
    kv.layers[0].fill_(1.0)
    plan = kernels.plan(make_batch([Chunk([0], 70, list(range(18)))], BLOCK).on(device), kv, 1, frozenset((None,)))
    empty = replace(plan, context_lens=torch.zeros_like(plan.context_lens))
    query = torch.ones(1, 1, 16, device=device)
    assert not kernels.attend(query, kv, 0, empty, None, 0.3, None, None).any()
    assert (kernels.attend(query, kv, 0, plan, None, 0.3, None, None) == 1).all()


def test_parts_are_many_for_few_long_sequences() -> None:
    assert split_count(1, 8, 100) == 1
    assert split_count(1, 8, 8192) == 32
    assert split_count(1, 8, 1000) == 4
    assert split_count(64, 8, 8192) == 1


@st.composite
def mixtures(draw: st.DrawFn) -> dict[str, object]:
    pair = st.integers(1, 70).flatmap(lambda end: st.tuples(st.one_of(st.just(1), st.integers(1, end)), st.just(end)))
    biased = draw(st.booleans())
    return {
        "lengths": draw(st.lists(pair, min_size=1, max_size=3)), "kv_heads": draw(st.integers(1, 3)), "group": draw(st.integers(1, 5)),
        "size": draw(st.sampled_from((8, 64, 72, 80, 96, 128, 256))), "dtype": draw(st.sampled_from(DTYPES)),
        "window": None if biased else draw(st.one_of(st.none(), st.integers(1, 80))), "softcap": draw(st.sampled_from((None, 0.5, 50.0))),
        "biased": biased,
    }  # fmt: skip


@pytest.mark.gpu  # minutes without one
@pytest.mark.timeout(1200)
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(mixture=mixtures(), split_keys=st.sampled_from((16, 256)))
def test_any_mixture(kernels: Kernels, device: torch.device, mixture: dict[str, object], split_keys: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attention_plan, "_SPLIT_KEYS", split_keys)
        compare(kernels, device, **mixture)  # type: ignore[arg-type]
