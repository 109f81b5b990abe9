"""Which rows of a step's batch are given by images, and what they are."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
import torch

from headway.engine.images.prompt_images import Tile
from headway.engine.step_plan import Chunk
from headway.kernels.batch import ForwardBatch, GivenRows
from headway.kernels.paged_kv import PagedKV
from headway.models.recorded_forward import Forward
from headway.models.vision.tower import SiglipTower

if TYPE_CHECKING:
    from headway.models.vision.tile_layout import TileLayout

AT_ONCE: Final = 2  # tiles in one pass of the tower: more take more memory and save no time
KEPT_BYTES: Final = 64 << 20  # of rows, for later chunks, other sequences of the request, and the next turn of a chat


class StepImages:
    """Completes batches. Rows are computed when a chunk needs them and kept while there is room; they come from pixels alone, so a sequence
    that was preempted, or whose rows had to go, gets the same ones again."""

    def __init__(self, tower: SiglipTower, layout: TileLayout):
        self._tower = tower
        self._layout = layout
        self._rows: OrderedDict[bytes, torch.Tensor] = OrderedDict()
        self._kept = max(AT_ONCE, KEPT_BYTES // (tower.config.rows * tower.config.output_size * tower.dtype.itemsize))

    def knows(self, digest: bytes) -> bool:
        """Whether the rows of such a tile need not be computed."""
        return digest in self._rows

    def completed(self, batch: ForwardBatch, chunks: list[Chunk]) -> ForwardBatch:
        """The batch with the rows that its images give."""
        spans = list(_spans(chunks))
        if not spans:
            return batch
        found = self._found({tile.digest: tile for tile, _, _, _ in spans}.values())
        rows = torch.cat([torch.arange(row, row + end - begin) for _, row, begin, end in spans])
        values = torch.cat([found[tile.digest][begin:end] for tile, _, begin, end in spans])
        return replace(batch, given=GivenRows(rows, values))

    def _found(self, tiles: Iterable[Tile]) -> dict[bytes, torch.Tensor]:
        """Digest -> [rows, hidden]. What a step needs is not given up while it is put together."""
        found: dict[bytes, torch.Tensor] = {}
        missing = []
        for tile in tiles:
            rows = self._rows.get(tile.digest)
            if rows is None:
                missing.append(tile)
            else:
                self._rows.move_to_end(tile.digest)
                found[tile.digest] = rows
        for at in range(0, len(missing), AT_ONCE):
            part = missing[at : at + AT_ONCE]
            pixels = torch.from_numpy(self._layout.seen(np.stack([tile.pixels for tile in part])))
            for tile, rows in zip(part, self._tower.encode(pixels), strict=True):
                found[tile.digest] = self._rows[tile.digest] = rows.clone()
        while len(self._rows) > self._kept:
            self._rows.popitem(last=False)
        return found


def with_given_rows(without: Forward, plain: Forward) -> Forward:
    """`without` runs batches that have no given rows (a recorded pass, say), `plain` calls the layers one by one."""

    def run(batch: ForwardBatch, kv: PagedKV) -> torch.Tensor:
        return without(batch, kv) if batch.given is None else plain(batch, kv)

    return run


def _spans(chunks: list[Chunk]) -> Iterator[tuple[Tile, int, int, int]]:
    """Tile, first row of the batch, and which of the tile's rows [begin, end) stand there."""
    offset = 0
    for chunk in chunks:
        images = chunk.sequence.request.images
        if images is not None:
            end = chunk.start + chunk.count
            for tile in images.among(chunk.start, end):
                begin = max(chunk.start, tile.start)
                yield tile, offset + begin - chunk.start, begin - tile.start, min(end, tile.start + images.rows) - tile.start
        offset += chunk.count
