"""DraftRows: a sequence and its drafts as the rows that the sampler sees."""

from __future__ import annotations

import copy
from collections.abc import Sequence as Many
from dataclasses import dataclass

from headway.engine.sequence import Sequence


@dataclass(slots=True)
class _Row:
    """`row` is a copy of the sequence with some drafts behind it; of its tokens the first `shared` are the sequence's own."""

    row: Sequence
    shared: int


class DraftRows:
    """Row j is the sequence as it would be if its first j drafts had been sampled: everything that sampling reads (number of tokens,
    their counts, what bad_words and min_tokens look at) is then right for the token behind draft j.

    Rows are kept from step to step, so that a step adds a few tokens to each instead of copying a long text.
    """

    def __init__(self) -> None:
        self._rows: list[_Row] = []

    def of(self, sequence: Sequence, drafts: Many[int]) -> list[Sequence]:
        """The sequence itself, which is row 0, then one for each draft."""
        while len(self._rows) < len(drafts):
            self._rows.append(_Row(_row_of(sequence), sequence.num_tokens))
        rows = [sequence]
        for j, kept in enumerate(self._rows[: len(drafts)], 1):
            row = kept.row
            row.tokens[kept.shared :] = [*sequence.tokens[kept.shared :], *drafts[:j]]
            kept.shared = sequence.num_tokens
            row.prompt_mask = sequence.prompt_mask if sequence.prompt_mask is not None else row.prompt_mask
            row.thinking = copy.copy(sequence.thinking)  # it follows the tokens that it is shown, and those may be wrong ones
            row.output_counts = None  # the sampler counts anew where it needs counts, unless it is spared that here
            if sequence.output_counts is not None:
                row.output_counts = sequence.output_counts.clone()
                for token in drafts[:j]:
                    row.output_counts[token] += 1
            rows.append(row)
        return rows


def _row_of(sequence: Sequence) -> Sequence:
    row = copy.copy(sequence)
    row.tokens = list(sequence.tokens)
    row.speculation = None
    return row
