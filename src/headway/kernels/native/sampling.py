"""Sampling by native kernels: arguments here, arithmetic in csrc/kernels/sampling.inl."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, chain
from typing import Final

import torch

from headway.kernels.native.tape import Tape
from headway.kernels.sampling import Choices, Ranked, SamplingKernels

_CANDIDATE: Final = 12  # bytes: a value, its weight, its index


class NativeSampling:
    """Rows are shared out among the threads of the tape."""

    def __init__(self, tape: Tape):
        self._tape = tape
        self._scratch = torch.empty(0, dtype=torch.uint8)

    def argmax(self, logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        rows, width = logits.shape
        tokens, values = torch.empty(rows, dtype=torch.int64), torch.empty(rows, dtype=torch.float32)
        self._tape.sink.argmax(tokens.data_ptr(), values.data_ptr(), logits.data_ptr(), rows, width, logits.stride(0))
        return tokens, values

    def draw(self, logits: torch.Tensor, choices: Choices, numbers: torch.Tensor, best: torch.Tensor, keep: bool) -> torch.Tensor:
        rows, width = logits.shape
        tokens = torch.empty(rows, dtype=torch.int64)
        self._tape.sink.draw(
            tokens.data_ptr(), logits.data_ptr(), best.data_ptr(), choices.temperature.data_ptr(), choices.min_p.data_ptr(),
            choices.top_k.data_ptr(), choices.top_p.data_ptr(), numbers.data_ptr(), choices.drawn.data_ptr(), self._room(2 * width),
            rows, width, logits.stride(0), keep,
        )  # fmt: skip
        return tokens

    def rank(self, logits: torch.Tensor, tokens: Sequence[Sequence[int]], count: int, normalised: bool) -> Ranked:
        rows, width = logits.shape
        asked = torch.tensor(list(chain.from_iterable(tokens)), dtype=torch.int64)
        first = torch.tensor([0, *accumulate(map(len, tokens))], dtype=torch.int64)
        values, ranks = torch.empty(len(asked), dtype=torch.float32), torch.empty(len(asked), dtype=torch.int64)
        best, best_values = torch.empty(rows, count, dtype=torch.int64), torch.empty(rows, count, dtype=torch.float32)
        self._tape.sink.rank(
            values.data_ptr(), ranks.data_ptr(), best.data_ptr(), best_values.data_ptr(), logits.data_ptr(), asked.data_ptr(),
            first.data_ptr(), self._room(width), rows, width, logits.stride(0), count, normalised,
        )  # fmt: skip
        return Ranked(values.tolist(), ranks.tolist(), best.tolist(), best_values.tolist())

    def forbid(self, logits: torch.Tensor, masks: torch.Tensor, rows: Sequence[int]) -> None:
        index = torch.tensor(rows, dtype=torch.int64)
        self._tape.sink.forbid(
            logits.data_ptr(), masks.data_ptr(), index.data_ptr(), len(rows), logits.shape[1], logits.stride(0), masks.shape[1]
        )

    def _room(self, candidates: int) -> int:
        """The address of memory for so many candidates of every thread."""
        size = candidates * _CANDIDATE * self._tape.threads
        if len(self._scratch) < size:
            self._scratch = torch.empty(size, dtype=torch.uint8)
        return self._scratch.data_ptr()


def native_sampling(tape: Tape) -> SamplingKernels:
    kernels = NativeSampling(tape)
    return SamplingKernels(argmax=kernels.argmax, draw=kernels.draw, rank=kernels.rank, forbid=kernels.forbid)
