"""Driving a loaded model the way an engine does, in the shapes that could go wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from headway.kernels.paged_kv import PagedKV
from headway.models.causal_lm import CausalLM
from headway.models.recorded_forward import Forward
from tests.kernels.batches import Chunk, make_batch, scattered_blocks

BLOCK = 4
LENGTH = 100


def tokens(seed: int, length: int = LENGTH) -> list[int]:
    return torch.randint(3, 160, (length,), generator=torch.Generator().manual_seed(seed)).tolist()


def difference(ours: torch.Tensor, theirs: torch.Tensor) -> float:
    assert ours.shape == theirs.shape
    return float((ours - theirs).abs().max())


class Session:
    """A model, a cache, and sequences of given total lengths in scattered blocks."""

    def __init__(self, model: CausalLM, lengths: Sequence[int]):
        self.model = model
        self.tables, total = scattered_blocks(lengths, BLOCK, seed=5)
        self.kv = PagedKV(total, BLOCK, model.config.kv_shape, model.dtype, model.device)
        self.forward: Forward = model

    def step(self, *chunks: tuple[int, Sequence[int], int]) -> list[torch.Tensor]:
        """(sequence, its tokens so far, how many of them are new) -> logits [new, vocabulary] of each."""
        batch = make_batch(
            [Chunk(tokens[len(tokens) - new :], len(tokens), self.tables[i]) for i, tokens, new in chunks], BLOCK
        )
        logits = self.model.logits(self.forward(batch, self.kv))
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


def mixed_batches(model: CausalLM, oracle: Callable[[list[int]], torch.Tensor]) -> float:
    """Prefills, chunks and decodes of four sequences in the same batches; the largest difference from `oracle(tokens)`."""
    texts = [tokens(seed) for seed in range(1, 5)]
    expected = [oracle(text) for text in texts]
    session = Session(model, [LENGTH] * 4)
    session.step((0, texts[0][:90], 90), (1, texts[1][:37], 37))
    mixed = session.step((2, texts[2][:60], 60), (0, texts[0][:91], 1), (3, texts[3][:5], 5), (1, texts[1][:77], 40))
    found = [difference(logits, expected[i][start:end]) for logits, (i, start, end) in zip(mixed, [(2, 0, 60), (0, 90, 91), (3, 0, 5), (1, 37, 77)], strict=True)]
    ends = [(3, 5), (0, 91), (1, 77), (2, 60)]
    decodes = session.step(*((i, texts[i][: end + 1], 1) for i, end in ends))
    return max(*found, *(difference(logits[0], expected[i][end]) for logits, (i, end) in zip(decodes, ends, strict=True)))
