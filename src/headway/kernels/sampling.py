"""What a sampler needs of a backend: the largest of each row, a draw of each row, log-probabilities with their ranks. N rows, V numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch


@dataclass(frozen=True)
class Choices:
    """How a token is chosen in each row: of softmax(logits / temperature) stay those that have at least min_p times the largest
    probability, then the top_k largest, then of these the fewest that reach top_p together. Rows that are not `drawn` are greedy."""

    drawn: torch.Tensor  # [N] bool
    temperature: torch.Tensor  # [N] float32; 1 for greedy rows
    min_p: torch.Tensor  # [N] float32; 0 = off
    top_k: torch.Tensor  # [N] int64; at least V = off
    top_p: torch.Tensor  # [N] float32; 1 = off

    @cached_property
    def tempered(self) -> Choices:
        """The same of logits that are already divided by the temperature."""
        return replace(self, temperature=torch.ones_like(self.temperature))

    @cached_property
    def has_min_p(self) -> bool:
        return bool(self.min_p.any())


@dataclass(frozen=True, slots=True)
class Ranked:
    """Of the tokens that were asked for, row after row: values and ranks. Of every row: the best ids and their values, best first."""

    values: list[float]
    ranks: list[int]  # how many numbers of the row are at least as large
    best: list[list[int]]
    best_values: list[list[float]]


@dataclass(frozen=True, slots=True)
class SamplingKernels:
    """One backend. Logits are float32 [N, V], the numbers of a row side by side."""

    argmax: Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor]]
    """logits -> int64 [N], the first place of each row's largest number, and float32 [N], that number; NaN where a row has one."""

    draw: Callable[[torch.Tensor, Choices, torch.Tensor, torch.Tensor, bool], torch.Tensor]
    """logits_, choices, numbers float64 [N] in [0, 1), best int64 [N] (by argmax), keep -> tokens int64 [N]: where the cumulative
    probability, in the order of the vocabulary, first exceeds number * its total; `best` in greedy rows. With `keep`, logits become
    what was drawn from: divided by the temperature, minus infinity for what did not stay; else they are undefined afterwards."""

    rank: Callable[[torch.Tensor, Sequence[Sequence[int]], int, bool], Ranked]
    """logits, tokens of each row, count of best ones, whether values are log_softmax(logits) or the logits themselves."""

    forbid: Callable[[torch.Tensor, torch.Tensor, Sequence[int]], None]
    """logits_, masks int32 [N, at least V / 32], rows: in these rows, numbers whose bit is 0 become minus infinity; bit i % 32 of word i // 32
    is that of number i."""
