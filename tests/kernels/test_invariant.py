"""The batch-invariant backend: right, and equal to the last bit whatever shares the batch and however a prompt is cut."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.kernels.interface import Kernels
from headway.kernels.invariant_backend import INVARIANT
from headway.kernels.invariant_rows import RowTiles, elementwise
from headway.kernels.paged_kv import KVShape, PagedKV
from headway.kernels.reference import REFERENCE, PlainLinear
from tests.kernels.batches import Chunk, make_batch, scattered_blocks

DTYPES = (torch.float32, torch.bfloat16)
BLOCK = 4


@pytest.fixture(params=[1, 2], ids=["1_thread", "2_threads"], scope="module")
def threads(request: pytest.FixtureRequest) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield
    torch.set_num_threads(before)


@st.composite
def rows_and_company(draw: st.DrawFn) -> tuple[int, int, list[int], torch.dtype, int]:
    """Width in, width out, which rows of the whole batch stand together, dtype, seed."""
    total = draw(st.integers(1, 40))
    chosen = draw(st.permutations(range(total)))[: draw(st.integers(1, total))]
    width = st.one_of(st.integers(1, 200), st.sampled_from((576, 577, 1023, 4097)))
    return draw(width), draw(width), list(chosen), draw(st.sampled_from(DTYPES)), draw(st.integers(0, 99))


def random(seed: int, *sizes: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(seed)).to(dtype)


@settings(max_examples=60, deadline=None)
@given(case=rows_and_company(), plain=st.booleans())
def test_linear_rows_do_not_see_each_other(threads: None, case: tuple[int, int, list[int], torch.dtype, int], plain: bool) -> None:
    inner, width, chosen, dtype, seed = case
    weight, bias = random(seed, width, inner, dtype=dtype), random(seed + 1, width, dtype=dtype)
    x, residual = random(seed + 2, 41, inner, dtype=dtype), random(seed + 3, 41, width, dtype=dtype)
    linear = RowTiles(PlainLinear(weight, bias), width, 1) if plain else INVARIANT.pack_linear(weight, bias)
    assert torch.equal(linear(x)[chosen], linear(x[chosen]))
    assert torch.equal(linear.add_to(residual, x)[chosen], linear.add_to(residual[chosen], x[chosen]))
    torch.testing.assert_close(linear(x), torch.nn.functional.linear(x, weight, bias), atol=0.1, rtol=0.05)


@settings(max_examples=60, deadline=None)
@given(case=rows_and_company())
def test_norms_gates_and_rotation_do_not_see_other_rows(threads: None, case: tuple[int, int, list[int], torch.dtype, int]) -> None:
    width, _, chosen, dtype, seed = case
    x = random(seed, 41, 2 * width, dtype=dtype) * 3
    weight = random(seed + 1, 2 * width, dtype=dtype)
    functions = [
        lambda k, t: k.rms_norm(t, weight, 1e-6), lambda k, t: k.rms_norm(t, weight.float(), 1e-6),
        lambda k, t: k.layer_norm(t, weight, weight, 1e-5),
        lambda k, t: k.silu_gate(t), lambda k, t: k.gelu_tanh_gate(t), lambda k, t: k.finish_logits(t.clone(), None, 5.0), lambda k, t: k.finish_logits(t.clone(), 3.0, None),
        *(lambda k, t, name=name: k.activations[name](t) for name in INVARIANT.activations),
    ]  # fmt: skip
    for function in functions:
        assert torch.equal(function(INVARIANT, x)[chosen], function(INVARIANT, x[chosen]))
        torch.testing.assert_close(function(INVARIANT, x), function(REFERENCE, x), atol=1e-5 if dtype is torch.float32 else 0.05, rtol=0.02)


@settings(max_examples=40, deadline=None)
@given(heads=st.integers(1, 5), half=st.integers(1, 40), dtype=st.sampled_from(DTYPES), count=st.integers(1, 40), seed=st.integers(0, 99))
def test_rotation_and_head_norms_in_place(threads: None, heads: int, half: int, dtype: torch.dtype, count: int, seed: int) -> None:
    x = random(seed, count, heads + 2, 2 * half, dtype=dtype)[:, :heads]
    cos, sin = (random(seed + i, count, 1, 2 * half, dtype=dtype) for i in (1, 2))
    weight = random(seed + 3, heads, 2 * half, dtype=dtype)

    def turned(kernels: Kernels, rows: slice) -> torch.Tensor:
        y = x[rows].clone()
        kernels.norm_heads(y, weight, 1e-6)
        kernels.rotate(y, cos[rows], sin[rows])
        return y

    whole = turned(INVARIANT, slice(None))
    for i in range(0, count, 7):
        assert torch.equal(whole[i : i + 1], turned(INVARIANT, slice(i, i + 1)))
    torch.testing.assert_close(whole, turned(REFERENCE, slice(None)), atol=1e-5 if dtype is torch.float32 else 0.1, rtol=0.03)


def test_elementwise_meets_every_size() -> None:
    for count in (1, 127, 128, 129, 16384, 16385, 50_001):
        x = random(count, count, dtype=torch.float32)
        torch.testing.assert_close(elementwise(torch.tanh, x), x.tanh())


@st.composite
def sequences(draw: st.DrawFn) -> tuple[list[int], list[int], int, int, int | None, float | None, torch.dtype, int]:
    """Length of the sequence, where its chunks end, ... of one sequence; and lengths of others that share the batch."""
    length = draw(st.integers(1, 70))
    ends = sorted(draw(st.sets(st.integers(1, length), max_size=5)) | {length})
    others = draw(st.lists(st.integers(1, 60), max_size=3))
    return (
        ends, others, draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.one_of(st.none(), st.integers(1, 40))),
        draw(st.sampled_from((None, 3.0))), draw(st.sampled_from(DTYPES)), draw(st.sampled_from((1, 3, 4, 16, 32))),
    )  # fmt: skip


def attended(ends: list[int], others: list[int], kv_heads: int, group: int, window: int | None, softcap: float | None,
             dtype: torch.dtype, block: int, kernels: Kernels) -> torch.Tensor:  # fmt: skip
    """What one sequence attends to, computed chunk by chunk; in every step the others run beside it, first in the batch."""
    heads, size, length = kv_heads * group, 10, ends[-1]
    tables, total = scattered_blocks([length, *others], block, seed=length)
    kv = PagedKV(total, block, KVShape(1, kv_heads, size), dtype)
    for layer in kv.layers:
        layer.copy_(random(5 + len(ends), *layer.shape, dtype=dtype))  # what lies in unwritten slots must not matter
    rows = random(1, length, heads + 2 * kv_heads, size, dtype=dtype)
    out = []
    for start, end in zip([0, *ends[:-1]], ends, strict=True):
        company = [Chunk([0] * n, n, table) for n, table in zip(others, tables[1:], strict=True)]
        batch = make_batch([*company, Chunk([0] * (end - start), end, tables[0])], block)
        mine = torch.cat((random(2, sum(others), heads + 2 * kv_heads, size, dtype=dtype), rows[start:end]))
        plan = kernels.plan(batch, kv, heads, frozenset((window,)))
        kernels.store(mine[:, heads:], kv, 0, plan)
        out.append(kernels.attend(mine[:, :heads], kv, 0, plan, window, 0.3, softcap)[sum(others) :])
    return torch.cat(out)


@settings(max_examples=80, deadline=None)
@given(case=sequences())
def test_attention_knows_neither_chunks_nor_company(threads: None, case: tuple[list[int], list[int], int, int, int | None, float | None, torch.dtype, int]) -> None:
    ends, others, *shape = case
    whole = attended([ends[-1]], [], *shape, INVARIANT)
    assert torch.equal(attended(ends, others, *shape, INVARIANT), whole)
    exact = shape[4] is torch.float32
    torch.testing.assert_close(whole, attended([ends[-1]], [], *shape, REFERENCE), atol=2e-6 if exact else 0.05, rtol=1e-5 if exact else 0.05)
