"""Numbers of 2 to 8 bits packed without gaps into 32-bit words, lowest bits first."""

from __future__ import annotations

import torch


def unpack_words(words: torch.Tensor, bits: int, count: int) -> torch.Tensor:
    """int32 [..., w] -> uint8 [..., count], the first `count` numbers of each row. Numbers may straddle words."""
    raw = words.clone(memory_format=torch.contiguous_format).view(torch.uint8)  # little-endian, as safetensors is
    if bits == 8:
        return raw[..., :count]
    if 8 % bits == 0:
        shifts = torch.arange(0, 8, bits, dtype=torch.uint8)
        return ((raw[..., None] >> shifts) & ((1 << bits) - 1)).flatten(-2)[..., :count]
    # Eight numbers take `bits` whole bytes, and each lies in at most two of them.
    padded = torch.nn.functional.pad(raw, (0, -raw.shape[-1] % bits))
    groups = padded.view(*padded.shape[:-1], -1, bits)
    start = torch.arange(8) * bits
    low, shift = start // 8, (start % 8).to(torch.int32)
    pairs = groups[..., low].int() | (groups[..., (low + 1).clamp_max(bits - 1)].int() << 8)
    return ((pairs >> shift) & ((1 << bits) - 1)).to(torch.uint8).flatten(-2)[..., :count]
