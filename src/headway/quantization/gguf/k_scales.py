"""The 12 bytes of Q4_K and Q5_K in which eight 6-bit scales and eight 6-bit minima are packed."""

from __future__ import annotations

import torch


def scales_and_minima(packed: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """uint8 [n, 12] -> scales and minima, float32 [n, 8] each.

    The first four scales are the low 6 bits of bytes 0-3, the first four minima those of bytes 4-7. The last four have
    their low 4 bits in bytes 8-11 (scale low half, minimum high half) and their top 2 bits above the first four.
    """
    first_scales, first_minima, rest = packed[:, 0:4], packed[:, 4:8], packed[:, 8:12]
    scales = torch.cat((first_scales & 63, (rest & 15) | ((first_scales >> 6) << 4)), 1)
    minima = torch.cat((first_minima & 63, (rest >> 4) | ((first_minima >> 6) << 4)), 1)
    return scales.float(), minima.float()
