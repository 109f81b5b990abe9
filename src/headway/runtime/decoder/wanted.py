"""What a row wants of a decoder: the `Row.detail` of every readout on a decoder.

| detail | the trunk's outcome |
|---|---|
| `HiddenAt((p, q, ...))` | float32 [positions, hidden]: hidden states at these indices of `token_ids`, final norm applied, in the order asked |
| `LabelLogits((a, b, ...))` | float32 [labels + 2]: logits of these token ids at the last position; then the logarithm of the sum of exp over the whole vocabulary; then the largest logit of the vocabulary |

`exp(logit - outcome[-2])` is a label's probability among all tokens, so the mass of the labels is the sum of those, and the
likeliest token is a label exactly when the largest label logit reaches `outcome[-1]`. All logits are before any temperature.
A row whose numbers are not finite has the outcome `ItemFailure("invalid_model_output")`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from headway.decisions.label_logits.wanted import LabelLogits
from headway.runtime.row import Row

__all__ = ["HiddenAt", "LabelLogits", "Wanted", "first_wanted", "wanted_of"]


@dataclass(frozen=True, slots=True)
class HiddenAt:
    """Indices into the row's tokens, 0 <= p < length. In any order; at least one."""

    positions: tuple[int, ...]


Wanted: TypeAlias = HiddenAt | LabelLogits


def wanted_of(row: Row) -> Wanted:
    """Raises ValueError for a row that no decoder can read: that is a fault of the code that made it, never of a request."""
    wanted = row.detail
    if not isinstance(wanted, (HiddenAt, LabelLogits)):
        raise ValueError(f"a row of readout {row.readout!r} has the detail {wanted!r:.80}; decoders read HiddenAt and LabelLogits")
    if isinstance(wanted, HiddenAt) and not (
        wanted.positions and min(wanted.positions) >= 0 and max(wanted.positions) < len(row.token_ids)
    ):
        raise ValueError(f"hidden states of positions {wanted.positions!r:.80} are asked of a row of {len(row.token_ids)} tokens")
    return wanted


def first_wanted(row: Row) -> int:
    """The earliest position whose hidden state is read: it and all after it must be computed, however much is known."""
    wanted = wanted_of(row)
    return min(wanted.positions) if isinstance(wanted, HiddenAt) else len(row.token_ids) - 1
