"""A rounded matrix as the tensors of a compressed-tensors checkpoint.

pack-quantized: `weight_packed` int32 [out, in/8], eight 4-bit numbers q + 8 in a word, the first in the lowest bits; `weight_scale` [out, groups];
`weight_shape`; with zero points `weight_zero_point` int32 [out/8, groups], packed along the outputs in the same way. The 8-bit formats store
`weight` and `weight_scale` [out, 1].
"""

from __future__ import annotations

import torch

from headway.compression.rounding import Grid, Rounded


def stored_weight(rounded: Rounded, grid: Grid) -> dict[str, torch.Tensor]:
    """Endings of names -> tensors."""
    scales = rounded.scales.to(grid.scale_dtype)
    if grid.bits == 8:
        return {"weight": rounded.numbers, "weight_scale": scales}
    stored = {
        "weight_packed": pack_nibbles(rounded.numbers), "weight_scale": scales, "weight_shape": torch.tensor(rounded.numbers.shape),
    }  # fmt: skip
    if rounded.zeros is not None:
        stored["weight_zero_point"] = pack_nibbles(rounded.zeros.t()).t().contiguous()
    return stored


def pack_nibbles(numbers: torch.Tensor) -> torch.Tensor:
    """int8 [..., n] from -8 to 7 -> int32 [..., n/8], the last word filled up."""
    unsigned = torch.nn.functional.pad(numbers + 8, (0, -numbers.shape[-1] % 8)).to(torch.uint8)
    pairs = unsigned.reshape(*unsigned.shape[:-1], -1, 2)
    halves = pairs[..., 0] | (pairs[..., 1] << 4)
    return halves.contiguous().view(torch.int32)  # little-endian, as safetensors is
