"""The sixteen numbers that IQ4_NL and IQ4_XS choose from (`kvalues_iq4nl` of ggml)."""

from __future__ import annotations

from typing import Final

import torch

_VALUES: Final = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)


def iq4_values(codes: torch.Tensor) -> torch.Tensor:
    """uint8 codes 0..15 -> int8."""
    return torch.tensor(_VALUES, dtype=torch.int8).index_select(0, codes.flatten().int()).view(codes.shape)
