"""Rotation and writing to the cache, together and each alone, against the reference."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from headway.kernels.interface import Kernels
from headway.kernels.paged_kv import KVShape, PagedKV
from headway.kernels.reference import REFERENCE
from tests.kernels.batches import Chunk, make_batch
from tests.kernels.triton.tolerances import DTYPES, close, randn

BLOCK = 4
BATCH = make_batch([Chunk([0] * 3, 6, [2, 0]), Chunk([0], 1, [3])], BLOCK)


def tables(rotated: int, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    frequencies = torch.logspace(0, -3, rotated // 2)
    return REFERENCE.rotary_tables(BATCH.positions * 7, frequencies, 1.0, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("size", "rotated"), [(16, 16), (80, 80), (96, 48), (24, 6)])
def test_rotation_and_store(kernels: Kernels, device: torch.device, dtype: torch.dtype, size: int, rotated: int) -> None:
    """Heads of a power of two and others, rotated in whole or in part; query heads 3, key heads 2."""
    rows, (cos, sin) = randn(4, 9, size, dtype=dtype)[:, 1:8], tables(rotated, dtype)
    found, wanted = rows.to(device, copy=True), rows.clone()
    theirs, ours = PagedKV(4, BLOCK, KVShape(2, 2, size), dtype), PagedKV(4, BLOCK, KVShape(2, 2, size), dtype, device)
    REFERENCE.rotate_and_store(wanted, 3, cos, sin, theirs, 1, BATCH)
    plan = kernels.plan(BATCH.on(device), ours, 3, frozenset((None,)))
    kernels.rotate_and_store(found, 3, cos.to(device), sin.to(device), ours, 1, plan)
    close(found, wanted)
    assert not ours.layers[0].any()
    close(ours.layers[1], theirs.layers[1])


@pytest.mark.parametrize("dtype", DTYPES)
def test_rotation_alone_changes_only_its_heads(kernels: Kernels, device: torch.device, dtype: torch.dtype) -> None:
    rows, (cos, sin) = randn(4, 6, 20, dtype=dtype), tables(20, dtype)
    found, wanted = rows.to(device, copy=True), rows.clone()
    kernels.rotate(found[:, 1:4], cos.to(device), sin.to(device))
    REFERENCE.rotate(wanted[:, 1:4], cos, sin)
    close(found, wanted)
    assert torch.equal(found[:, 4:].cpu(), rows[:, 4:])


def test_store_alone_and_a_slot_that_is_nowhere(kernels: Kernels, device: torch.device) -> None:
    rows = randn(4, 4, 12)
    theirs, ours = PagedKV(4, BLOCK, KVShape(1, 2, 12), torch.float32), PagedKV(4, BLOCK, KVShape(1, 2, 12), torch.float32, device)
    REFERENCE.store(rows, theirs, 0, BATCH)
    theirs.layers[0][:, :, 3, 0] = 0  # the last token's
    batch = replace(BATCH, slots=BATCH.slots.index_fill(0, torch.tensor(3), -1)).on(device)
    kernels.store(rows.to(device), ours, 0, kernels.plan(batch, ours, 2, frozenset((None,))))
    assert torch.equal(ours.layers[0].cpu(), theirs.layers[0])
