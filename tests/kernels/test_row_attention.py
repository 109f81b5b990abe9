"""Attention of packed rows on the torch backend against the reference."""

from __future__ import annotations

import pytest
import torch

from headway.kernels.invariant_backend import INVARIANT
from headway.kernels.packed_batch import pack
from headway.kernels.reference import REFERENCE
from headway.kernels.row_groups import RowGroup, group_rows
from headway.kernels.torch_backend import TORCH

HEADS, SIZE, REACH = 3, 16, 5
TOLERANCE = {torch.float32: 2e-6, torch.bfloat16: 0.02}
# Below, at and above where a reach begins to matter, and where strips begin; whole strips and a rest.
LENGTHS = [1, 2, 5, 6, 7, 10, 19, 20, 21, 30, 31, 47, 6, 20]


def random(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def groups_of(lengths: list[int]) -> tuple[RowGroup, ...]:
    return group_rows(pack([[0] * length for length in lengths])).groups


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("reach", [None, REACH])
def test_every_length(dtype: torch.dtype, reach: int | None) -> None:
    qkv = random(sum(LENGTHS), 3 * HEADS, SIZE, seed=1).to(dtype)
    ours, reference = (kernels.attend_rows(qkv, groups_of(LENGTHS), HEADS, reach, 0.4, None) for kernels in (TORCH, REFERENCE))
    assert ours.shape == (sum(LENGTHS), HEADS * SIZE)
    assert ours.dtype == dtype
    assert (ours - reference).abs().max() <= TOLERANCE[dtype]


def test_a_reach_hides_what_is_beyond() -> None:
    qkv = random(30, 3 * HEADS, SIZE, seed=2)
    changed = qkv.clone()
    changed[20, HEADS:] += 1  # key and value
    for kernels in (TORCH, REFERENCE):
        before, after = (kernels.attend_rows(each, groups_of([30]), HEADS, REACH, 0.4, None) for each in (qkv, changed))
        moved = (before - after).abs().amax(1) > 0
        assert moved.nonzero()[:, 0].tolist() == list(range(20 - REACH, 20 + REACH + 1))


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_a_bias_is_added_to_the_scores(dtype: torch.dtype) -> None:
    lengths = [4, 4, 9]
    qkv, bias = random(17, 3 * HEADS, SIZE, seed=3).to(dtype), random(HEADS, 12, 12, seed=4).to(dtype) * 3
    ours, reference = (kernels.attend_rows(qkv, groups_of(lengths), HEADS, None, 0.25, bias) for kernels in (TORCH, REFERENCE))
    assert (ours - reference).abs().max() <= TOLERANCE[dtype]
    query, key, value = qkv[8:].float().transpose(0, 1).chunk(3)
    plain = ((query @ key.transpose(1, 2)) * 0.25 + bias[:, :9, :9].float()).softmax(-1) @ value
    assert (reference[8:].float() - plain.transpose(0, 1).flatten(1)).abs().max() <= TOLERANCE[dtype]


@pytest.mark.parametrize("reach", [None, REACH])
def test_batch_invariance(reach: int | None) -> None:
    qkv = random(sum(LENGTHS), 3 * HEADS, SIZE, seed=5)
    groups = groups_of(LENGTHS)
    together = INVARIANT.attend_rows(qkv, groups, HEADS, reach, 0.4, None)
    for group in groups:
        for row in range(group.rows):
            part = slice(group.start + row * group.length, group.start + (row + 1) * group.length)
            alone = INVARIANT.attend_rows(qkv[part].clone(), (RowGroup(0, 1, group.length),), HEADS, reach, 0.4, None)
            assert torch.equal(alone, together[part])
