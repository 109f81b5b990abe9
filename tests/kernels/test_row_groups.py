"""Rows grouped by length: every token in its group, and back where it was."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.kernels.packed_batch import pack
from headway.kernels.row_groups import group_rows

LENGTHS = st.lists(st.integers(0, 5), max_size=12)


@settings(max_examples=200, deadline=None)
@given(LENGTHS)
def test_rows_of_one_length_lie_together_and_come_back(lengths: list[int]) -> None:
    rows = [[100 * number + place for place in range(length)] for number, length in enumerate(lengths)]
    segments = [[number % 3 for _ in row] for number, row in enumerate(rows)]
    batch = pack(rows, segments)
    grouped = group_rows(batch)
    assert [group.length for group in grouped.groups] == list(dict.fromkeys(group.length for group in grouped.groups))
    end = 0
    seen = []
    for group in grouped.groups:
        assert group.start == end
        end = group.tokens.stop
        part = grouped.token_ids[group.tokens].view(group.rows, group.length).tolist()
        seen += part
        assert grouped.positions[group.tokens].view(group.rows, group.length).tolist() == [list(range(group.length))] * group.rows
    assert end == len(batch.token_ids)
    assert sorted(seen) == sorted(row for row in rows if row)
    assert torch.equal(grouped.restored(grouped.token_ids[:, None])[:, 0], batch.token_ids)
    assert grouped.segments is not None
    assert batch.segments is not None
    assert torch.equal(grouped.restored(grouped.segments[:, None])[:, 0], batch.segments)


def test_nothing_moves_where_rows_lie_by_length_already() -> None:
    batch = pack([[1, 2, 3], [4, 5, 6], [7], [8, 9]])
    grouped = group_rows(batch)
    assert grouped.back is None
    assert grouped.token_ids is batch.token_ids
    assert [(group.start, group.rows, group.length) for group in grouped.groups] == [(0, 2, 3), (6, 1, 1), (7, 1, 2)]
