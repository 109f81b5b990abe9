"""ALiBi: attention that prefers near keys, instead of positions (Press et al., arXiv 2108.12409)."""

from __future__ import annotations

import math

import torch

from headway.kernels.interface import CPU


def alibi_slopes(num_heads: int) -> torch.Tensor:
    """float32 [H]: a geometric sequence from 2^(-8/n) to 2^-8 for a power of two of heads n. Further heads get every second
    term of the sequence for 2n (the paper's code)."""
    whole = 1 << int(math.log2(num_heads))

    def sequence(heads: int, step: int, count: int) -> list[float]:
        return [2.0 ** (-8.0 / heads * (1 + step * i)) for i in range(count)]

    return torch.tensor(sequence(whole, 1, whole) + sequence(2 * whole, 2, num_heads - whole))


class AlibiTable:
    """What is added to the score of a head for the key at a position: slope * position.

    That differs from slope * distance by a number that is the same for all keys of a query, which softmax does not see.
    """

    __slots__ = ("_outgrown", "_scale", "_slopes", "_table")

    def __init__(self, num_heads: int, scale: float, device: torch.device = CPU):
        self._slopes = alibi_slopes(num_heads).to(device)
        self._scale = scale
        self._table = torch.empty(num_heads, 0, device=device)
        self._outgrown: list[torch.Tensor] = []  # a recorded forward pass may hold the address of a smaller table

    def reaching(self, positions: int) -> torch.Tensor:
        """float32 [H, at least `positions`], times the scale. Rounded to bfloat16 before, as transformers does for every
        dtype: models were trained so."""
        if self._table.shape[1] < positions:
            size = 1 << (positions - 1).bit_length()
            self._outgrown.append(self._table)
            self._table = (self._slopes.bfloat16()[:, None] * torch.arange(size, device=self._slopes.device)).float() * self._scale
        return self._table


class DividedAlibi(AlibiTable):
    """The table of some of the heads of a model."""

    __slots__ = ()

    def __init__(self, num_heads: int, own: range, scale: float, device: torch.device = CPU):
        super().__init__(num_heads, scale, device)
        self._slopes = self._slopes[own.start : own.stop]
        self._table = self._table[own.start : own.stop]
