"""w = (q - z) s, with one scale and one zero point for a group of inputs: what most integer formats share."""

from __future__ import annotations

import torch


def grouped_affine(
    q: torch.Tensor, scales: torch.Tensor, zeros: torch.Tensor | float, group: int | torch.Tensor
) -> torch.Tensor:
    """`q` integers [rows, in], `scales` float32 [rows, groups], `zeros` the same or one number -> float32 [rows, in].

    `group` is how many neighbouring inputs share a scale (the last group may be short), or the group of each input, int [in].
    """
    rows, width = q.shape
    out = q.float()
    if isinstance(group, int) and width % group == 0:
        blocks = out.view(rows, -1, group)
        blocks -= zeros[..., None] if isinstance(zeros, torch.Tensor) else zeros
        blocks *= scales[..., None]
        return out
    index = torch.arange(width) // group if isinstance(group, int) else group
    out -= zeros[:, index] if isinstance(zeros, torch.Tensor) else zeros
    return out.mul_(scales[:, index])
