"""The input of one forward pass: tokens of many sequences, flattened, and where each keeps its keys and values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

IntArray = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class GivenRows:
    """What a model reads in the place of the embeddings of some tokens."""

    rows: torch.Tensor  # [G] int64, of the T tokens of a batch
    values: torch.Tensor  # [G, hidden]

    def put(self, x: torch.Tensor) -> torch.Tensor:
        """[T, hidden] with the given rows in their places."""
        return x.index_copy(0, self.rows.to(x.device), self.values.to(x))


@dataclass(frozen=True, slots=True)
class ForwardBatch:
    """T tokens of S sequences, sequence after sequence, each a contiguous run of new positions.

    Sequence s contributes query_lens[s] tokens, the last of which is at position context_lens[s] - 1; position p of
    it lives in block block_tables[s, p // block_size]. All blocks that positions [0, context_lens[s]) need are in
    the table; entries beyond are undefined. Blocks may be shared between sequences (prefix cache), also with blocks
    that this very batch writes: keys and values of all T tokens are stored before any attention of that layer.
    """

    token_ids: torch.Tensor  # [T] int64
    positions: torch.Tensor  # [T] int64
    slots: torch.Tensor  # [T] int64: block * block_size + offset, where the token's key and value are written
    query_lens: IntArray  # [S]
    context_lens: IntArray  # [S], new tokens included
    block_tables: IntArray  # [S, at least ceil(max(context_lens) / block_size)]
    logits_rows: torch.Tensor  # [N] int64, rows of the T tokens whose hidden state is wanted
    adapters: Any = ()  # `layers.low_rank.RowUpdates`: which of the T rows take which low-rank updates
    given: GivenRows | None = None

    def on(self, device: torch.device) -> ForwardBatch:
        """The same with its tensors on a device."""
        if self.token_ids.device == device:
            return self
        moved = torch.stack((self.token_ids, self.positions, self.slots)).to(device)
        return replace(self, token_ids=moved[0], positions=moved[1], slots=moved[2], logits_rows=self.logits_rows.to(device))
