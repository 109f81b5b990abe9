"""Driving a loaded model the way an engine does, in the shapes that could go wrong."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from headway.kernels.paged_kv import PagedKV
from headway.models.causal_lm import CausalLM
from tests.kernels.batches import Chunk, make_batch, scattered_blocks

BLOCK = 4


class Session:
    """A model, a cache, and sequences of given total lengths in scattered blocks."""

    def __init__(self, model: CausalLM, lengths: Sequence[int]):
        self.model = model
        self.tables, total = scattered_blocks(lengths, BLOCK, seed=5)
        self.kv = PagedKV(total, BLOCK, model.config.kv_shape, model.dtype)

    def step(self, *chunks: tuple[int, Sequence[int], int]) -> list[torch.Tensor]:
        """(sequence, its tokens so far, how many of them are new) -> logits [new, vocabulary] of each."""
        batch = make_batch(
            [Chunk(tokens[len(tokens) - new :], len(tokens), self.tables[i]) for i, tokens, new in chunks], BLOCK
        )
        logits = self.model.logits(self.model(batch, self.kv))
        return list(logits.split([new for _, _, new in chunks]))


def in_chunks(model: CausalLM, tokens: Sequence[int], size: int) -> torch.Tensor:
    """Logits of all positions, computed `size` tokens at a time."""
    session = Session(model, [len(tokens)])
    ends = [*range(size, len(tokens), size), len(tokens)]
    starts = [0, *ends[:-1]]
    return torch.cat([session.step((0, tokens[:end], end - start))[0] for start, end in zip(starts, ends, strict=True)])


def greedy(model: CausalLM, tokens: list[int], count: int, never: int) -> list[int]:
    """`count` likeliest next tokens, one by one; `never` is not chosen (transformers holds the end token back, too)."""
    session = Session(model, [len(tokens) + count])
    (logits,) = session.step((0, tokens, len(tokens)))
    found: list[int] = []
    for _ in range(count):
        allowed = logits[-1].clone()
        allowed[never] = float("-inf")
        found.append(int(allowed.argmax()))
        (logits,) = session.step((0, tokens + found, 1))
    return found
