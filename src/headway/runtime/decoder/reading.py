"""From the hidden states of a step to what its rows want."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import torch

from headway.models.causal_lm import CausalLM
from headway.runtime.decoder.walk import Piece
from headway.runtime.decoder.wanted import HiddenAt, LabelLogits, Wanted

Floats = npt.NDArray[np.float32]

_LOGITS_SLICE: Final = 128  # rows of logits in memory at once: 128 x 151,936 x 4 bytes = 78 MB


@dataclass(frozen=True, slots=True)
class Read:
    """One hidden state that is wanted: row `row` of the forward pass, the `slot`-th of its positions."""

    row: int
    slot: int


def wanted_reads(pieces: Sequence[Piece], wanted: Sequence[Wanted]) -> tuple[list[int], list[Read]]:
    """Rows of the flattened step whose hidden state is wanted, and by whom."""
    flat: list[int] = []
    reads: list[Read] = []
    offset = 0
    for piece in pieces:
        run, each = piece.run, wanted[piece.row]
        positions = each.positions if isinstance(each, HiddenAt) else (len(run.tokens) - 1,)
        for slot, position in enumerate(positions):
            if run.start <= position < run.start + run.count:
                flat.append(offset + position - run.start)
                reads.append(Read(piece.row, slot))
        offset += run.count
    return flat, reads


def store_reads(
    hidden: torch.Tensor, reads: Sequence[Read], wanted: Sequence[Wanted], outcomes: dict[int, Floats], model: CausalLM, known_tokens: int | None
) -> None:
    """hidden [reads, hidden] -> `outcomes` of the rows, as `wanted` describes them."""
    labelled: list[tuple[int, int, LabelLogits]] = []
    for i, read in enumerate(reads):
        each = wanted[read.row]
        if isinstance(each, LabelLogits):
            labelled.append((i, read.row, each))
        else:
            if read.row not in outcomes:
                outcomes[read.row] = np.zeros((len(each.positions), hidden.shape[1]), dtype=np.float32)
            outcomes[read.row][read.slot] = hidden[i].float().numpy()
    for start in range(0, len(labelled), _LOGITS_SLICE):
        part = labelled[start : start + _LOGITS_SLICE]
        logits = model.logits(hidden[[i for i, _, _ in part]])[:, :known_tokens]
        totals, largest = torch.logsumexp(logits, 1), logits.amax(1)
        for line, (_, row, each) in enumerate(part):
            chosen = logits[line, list(each.token_ids)]
            outcomes[row] = torch.cat((chosen, totals[line, None], largest[line, None])).numpy()
