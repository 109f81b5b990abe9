"""Attention of the rows of a packed batch against the reference."""

from __future__ import annotations

import pytest
import torch

from headway.kernels.native.attention import NativeAttention
from headway.kernels.native.tape import Tape
from headway.kernels.packed_batch import pack
from headway.kernels.reference import REFERENCE
from headway.kernels.row_groups import RowGroups, group_rows

# bfloat16: weights and results are rounded to 8 bits of mantissa.
TOLERANCE = {torch.float32: 3e-6, torch.bfloat16: 0.02}
LENGTHS = [1, 2, 7, 8, 9, 16, 17, 31, 48, 49, 63, 64, 65, 130, 7, 64]


def random(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def groups_of(lengths: list[int]) -> RowGroups:
    return group_rows(pack([[0] * length for length in lengths])).groups


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("reach", [None, 1, 20])
@pytest.mark.parametrize(("heads", "size"), [(3, 16), (2, 32), (2, 40), (1, 64)])
def test_every_length(tape: Tape, dtype: torch.dtype, reach: int | None, heads: int, size: int) -> None:
    qkv = random(sum(LENGTHS), 3 * heads, size, seed=1).to(dtype)
    ours = NativeAttention(tape).attend_rows(qkv, groups_of(LENGTHS), heads, reach, 0.2, None)
    expected = REFERENCE.attend_rows(qkv, groups_of(LENGTHS), heads, reach, 0.2, None)
    assert ours.shape == expected.shape
    assert ours.dtype == dtype
    assert (ours.float() - expected.float()).abs().max() <= TOLERANCE[dtype]


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("lengths", [[3, 5, 5], [90], [20, 70, 130]], ids=str)
def test_a_bias_is_added_to_the_scores(tape: Tape, dtype: torch.dtype, lengths: list[int]) -> None:
    qkv, bias = random(sum(lengths), 9, 16, seed=3).to(dtype), random(3, 140, 140, seed=4).to(dtype) * 3
    ours = NativeAttention(tape).attend_rows(qkv, groups_of(lengths), 3, None, 0.25, bias)
    expected = REFERENCE.attend_rows(qkv, groups_of(lengths), 3, None, 0.25, bias)
    assert (ours.float() - expected.float()).abs().max() <= TOLERANCE[dtype] * 2


def test_one_long_row_is_divided(tape: Tape) -> None:
    qkv = random(1500, 3, 64, seed=5)
    ours = NativeAttention(tape).attend_rows(qkv, groups_of([1500]), 1, None, 0.125, None)
    torch.testing.assert_close(ours, REFERENCE.attend_rows(qkv, groups_of([1500]), 1, None, 0.125, None), atol=3e-6, rtol=1e-5)
