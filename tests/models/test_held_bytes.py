from __future__ import annotations

import ctypes

import torch

from headway.models.held_bytes import held_bytes, held_ranges


class Slotted(torch.nn.Module):
    def __init__(self, parts: object):
        super().__init__()
        self.parts = parts


def test_every_tensor_counts_once_whatever_holds_it() -> None:
    table = torch.zeros(10, 4)
    model = Slotted([{"a": table, "b": (table[2:], torch.zeros(3, dtype=torch.bfloat16))}, torch.nn.Linear(4, 5, bias=False)])
    assert held_bytes(model) == 10 * 4 * 4 + 3 * 2 + 4 * 5 * 4


def test_packed_matrices_count_what_they_hold() -> None:
    packed = torch.ops.mkldnn._reorder_linear_weight(torch.zeros(64, 32), None)
    assert packed.layout is not torch.strided
    assert held_bytes(Slotted([packed, packed])) == 64 * 32 * 4


def test_circles_and_strangers_end() -> None:
    model = Slotted([])
    model.parts = [model, object(), "text", None, 7]
    assert held_bytes(model) == 0


def test_ranges_are_the_memory_itself() -> None:
    """Of plain and of packed tensors: what is written there is what is read."""
    table = torch.zeros(10, 4)
    packed = torch.ops.mkldnn._reorder_linear_weight(torch.full((64, 32), 3.0), None)
    ranges = dict(held_ranges(Slotted([table, table[2:], packed])))
    assert ranges[table.data_ptr()] == table.nbytes
    assert len(ranges) == 2
    address, nbytes = next((a, n) for a, n in ranges.items() if a != table.data_ptr())
    assert nbytes >= 64 * 32 * 4
    ctypes.memset(address, 0, nbytes)
    assert not packed.to_dense().any()
