"""How GGUF blocks store what several of them share: float16 fields, nibbles and single bits."""

from __future__ import annotations

import torch


def half_field(blocks: torch.Tensor, offset: int) -> torch.Tensor:
    """The float16 at byte `offset` of every block, as float32 [n, 1]."""
    return blocks[:, offset : offset + 2].contiguous().view(torch.float16).float()


def nibbles(packed: torch.Tensor) -> torch.Tensor:
    """uint8 [..., k] -> uint8 [..., 2k]: all low halves of a row, then all high halves."""
    return torch.cat((packed & 15, packed >> 4), -1)


def bits(packed: torch.Tensor) -> torch.Tensor:
    """uint8 [n, k] -> uint8 [n, 8k]: the bits, lowest first."""
    return ((packed[..., None] >> torch.arange(8, dtype=torch.uint8)) & 1).flatten(1)
