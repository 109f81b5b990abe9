"""RowSampler: the sampler for --batch-invariant. Each row is sampled as if it were the whole batch."""

from __future__ import annotations

import torch

from headway.engine.sampler import SampledToken, Sampler
from headway.engine.sequence import Sequence


class RowSampler(Sampler):
    """Sums over a vocabulary and remainders of vectors may come out differently in a batch of another size; in a batch of
    one they cannot. Costs one set of operator calls for each sequence."""

    def sample(self, logits: torch.Tensor, sequences: list[Sequence]) -> list[SampledToken]:
        return [super(RowSampler, self).sample(logits[i : i + 1], [s])[0] for i, s in enumerate(sequences)]
