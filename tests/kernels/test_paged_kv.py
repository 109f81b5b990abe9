"""The memory of the cache: laid out as promised, committed lazily, cleared on demand."""

from __future__ import annotations

import psutil
import pytest
import torch

from headway.kernels.paged_kv import KVShape, PagedKV


def test_memory_is_committed_only_when_written() -> None:
    before = psutil.Process().memory_info().rss
    kv = PagedKV(50_000, 16, KVShape(4, 4, 64), torch.bfloat16)
    assert kv.nbytes == 2 * 4 * 4 * 64 * 16 * 50_000 * 2
    assert psutil.Process().memory_info().rss - before < kv.nbytes // 20


def test_block_and_token_rows_are_views_of_the_layer() -> None:
    kv = PagedKV(5, 4, KVShape(1, 2, 8), torch.float32)
    kv.token_rows[0][(1 * 2 + 1) * 5 * 4 + 3 * 4 + 2] = 1.0  # value, head 1, block 3, offset 2
    assert kv.layers[0][1, 1, 3, 2].eq(1).all()
    assert kv.block_rows[0][(1 * 2 + 1) * 5 + 3].sum() == 8
    assert kv.layers[0].sum() == 8


def test_clear_zeroes_blocks_in_all_layers() -> None:
    kv = PagedKV(4, 2, KVShape(2, 1, 4), torch.bfloat16)
    for layer in kv.layers:
        layer.fill_(float("nan"))
    kv.clear([1, 3])
    for layer in kv.layers:
        assert layer[:, :, [1, 3]].eq(0).all()
        assert layer[:, :, [0, 2]].isnan().all()


def test_impossible_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="positive sizes"):
        PagedKV(0, 16, KVShape(1, 1, 8), torch.float32)
