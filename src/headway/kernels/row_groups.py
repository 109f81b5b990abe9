"""Rows of a packed batch, sorted by length, so that rows of one length lie side by side and attend in one call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
import numpy.typing as npt
import torch

from headway.kernels.packed_batch import PackedBatch


@dataclass(frozen=True, slots=True)
class RowGroup:
    """`rows` rows of `length` tokens each, from token `start` on."""

    start: int
    rows: int
    length: int

    @property
    def tokens(self) -> slice:
        return slice(self.start, self.start + self.rows * self.length)


@dataclass(frozen=True, slots=True)
class RowGroups(Sequence[RowGroup]):
    """`starts` [S + 1]: row s is tokens starts[s] to starts[s + 1], for kernels that need no groups."""

    groups: tuple[RowGroup, ...]
    starts: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.groups)

    def __iter__(self) -> Iterator[RowGroup]:
        return iter(self.groups)

    @overload
    def __getitem__(self, index: int) -> RowGroup: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[RowGroup, ...]: ...
    def __getitem__(self, index: int | slice) -> RowGroup | tuple[RowGroup, ...]:
        return self.groups[index]


@dataclass(frozen=True, slots=True)
class GroupedRows:
    """A batch in the order of its groups. `back` [T]: where the tokens of the batch are now, None = where they were."""

    token_ids: torch.Tensor  # [T] int64
    positions: torch.Tensor  # [T] int64
    segments: torch.Tensor | None  # [T] int64
    groups: RowGroups
    back: torch.Tensor | None

    def restored(self, x: torch.Tensor) -> torch.Tensor:
        """[T, n] in the order of the batch."""
        return x if self.back is None else x.index_select(0, self.back)


def group_rows(batch: PackedBatch) -> GroupedRows:
    """Rows of one length become neighbours; nothing moves where they are. Empty rows take no place."""
    lengths = batch.lengths
    changes = np.flatnonzero(np.diff(lengths)) + 1
    runs = lengths[np.concatenate((np.zeros(1, np.int64), changes))] if len(lengths) else lengths
    if len(np.unique(runs)) == len(runs):
        return GroupedRows(batch.token_ids, batch.positions, batch.segments, _groups(lengths), None)
    order = np.argsort(lengths, kind="stable")
    starts = np.zeros_like(batch.starts)
    np.cumsum(lengths[order], out=starts[1:])
    moved = np.repeat(batch.starts[:-1][order] - starts[:-1], lengths[order]) + np.arange(starts[-1])
    back = np.empty_like(moved)
    back[moved] = np.arange(len(moved))
    taken = torch.from_numpy(moved)
    return GroupedRows(
        batch.token_ids[taken], batch.positions[taken], None if batch.segments is None else batch.segments[taken],
        _groups(lengths[order]), torch.from_numpy(back),
    )  # fmt: skip


def _groups(lengths: npt.NDArray[np.int64]) -> RowGroups:
    found: list[RowGroup] = []
    start = 0
    for length in lengths.tolist():
        if found and found[-1].length == length:
            found[-1] = RowGroup(found[-1].start, found[-1].rows + 1, length)
        else:
            found.append(RowGroup(start, 1, length))
        start += length
    filled = lengths[lengths > 0]
    starts = np.zeros(len(filled) + 1, np.int64)
    np.cumsum(filled, out=starts[1:])
    return RowGroups(tuple(group for group in found if group.length), starts)
