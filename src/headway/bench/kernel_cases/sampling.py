"""Sampling from the logits of a vocabulary of 49,152: normal numbers of deviation 2.5, whose nucleus of 0.9 holds about 1,300 tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

import torch

from headway.bench.kernel_case import Contenders, KernelCase
from headway.kernels.native.sampling import native_sampling
from headway.kernels.native.tape import Tape
from headway.kernels.sampling import Choices, SamplingKernels
from headway.kernels.torch_sampling import TORCH_SAMPLING

_ROWS: Final = (1, 32)
_VOCABULARY: Final = 49_152
# top_k, top_p
_FILTERS: Final = {"draw": (_VOCABULARY, 1.0), "draw, top_k 50": (50, 1.0), "draw, top_p 0.9": (_VOCABULARY, 0.9)}


def _logits(rows: int) -> torch.Tensor:
    return torch.randn(rows, _VOCABULARY, generator=torch.Generator().manual_seed(0)) * 2.5


def _argmax(rows: int, tape: Tape) -> Contenders:
    logits = _logits(rows)
    return Contenders(partial(native_sampling(tape).argmax, logits), partial(TORCH_SAMPLING.argmax, logits))


def _draw(top_k: int, top_p: float, rows: int, tape: Tape) -> Contenders:
    """Both get a copy of the logits, which torch's draw changes."""
    logits, numbers, ones = _logits(rows), torch.rand(rows, dtype=torch.float64), torch.ones(rows)
    choices = Choices(ones > 0, ones, torch.zeros(rows), torch.full((rows,), top_k), torch.full((rows,), top_p))
    best = logits.argmax(-1)

    def run(kernels: SamplingKernels) -> torch.Tensor:
        return kernels.draw(logits.clone(), choices, numbers, best, False)

    return Contenders(partial(run, native_sampling(tape)), partial(run, TORCH_SAMPLING))


def _rank(rows: int, tape: Tape) -> Contenders:
    logits, tokens = _logits(rows), [[5]] * rows
    return Contenders(partial(native_sampling(tape).rank, logits, tokens, 20, True), partial(TORCH_SAMPLING.rank, logits, tokens, 20, True))


def _cases() -> Iterator[KernelCase]:
    draws = {name: partial(_draw, *filters) for name, filters in _FILTERS.items()}
    named: dict[str, Callable[[int, Tape], Contenders]] = {"argmax": _argmax, **draws, "20 log-probabilities": _rank}
    for name, make in named.items():
        for rows in _ROWS:
            yield KernelCase(
                family="sampling", name=name, shape=f"[{rows},{_VOCABULARY}]", nbytes=4.0 * rows * _VOCABULARY,
                operations=(1.0 if name == "argmax" else 12.0) * rows * _VOCABULARY, arithmetic="fp32", beside="torch backend",
                make=partial(make, rows), from_memory=False,
            )  # fmt: skip


CASES: Final = tuple(_cases())
