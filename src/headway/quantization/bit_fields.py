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
    numbers = []
    for place in range(8):
        first, shift = divmod(place * bits, 8)
        number = groups[..., first] >> shift
        if shift + bits > 8:
            number |= groups[..., first + 1] << (8 - shift)
        numbers.append(number & ((1 << bits) - 1))
    return torch.stack(numbers, -1).flatten(-2)[..., :count]
