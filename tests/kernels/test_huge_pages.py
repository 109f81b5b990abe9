"""Which memory is turned into huge pages, and that its contents survive."""

from __future__ import annotations

import torch

from headway.kernels.huge_pages import HUGE, anonymous_ranges, use_huge_pages

MAPS = """\
00400000-00a00000 r-xp 00000000 fe:00 123 /usr/bin/python3
10100000-10f00000 rw-p 00000000 00:00 0                                  [heap]
20000000-20100000 rw-p 00000000 00:00 0
7f0000000000-7f0000a00000 rw-p 00000000 00:00 0 
7f1000000000-7f1000a00000 rw-p 00100000 fe:00 77 /lib/libtorch.so
7f2000000000-7f2000a00000 rw-s 00000000 00:00 0 /dev/shm/x
7ffc00000000-7ffc00a00000 rw-p 00000000 00:00 0                          [stack]
"""  # noqa: W291


def test_only_whole_huge_pages_of_private_memory_without_a_file() -> None:
    expected = [(0x10200000, 0x10E00000), (0x7F0000000000, 0x7F0000A00000)]
    assert list(anonymous_ranges(MAPS.splitlines())) == expected


def test_contents_survive() -> None:
    values = torch.arange(6 * HUGE // 4, dtype=torch.int32)
    turned = use_huge_pages()
    assert turned % HUGE == 0
    assert torch.equal(values, torch.arange(len(values), dtype=torch.int32))
