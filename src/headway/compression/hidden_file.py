"""What the layers of a model are fed with, on disk: so that memory does not grow with the number of texts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import torch


class HiddenFile:
    """float32 [batches, batch, length, hidden] without a header; whole or not there."""

    def __init__(self, path: Path, shape: tuple[int, int, int, int]):
        self.path = path
        self._shape = shape

    @property
    def nbytes(self) -> int:
        return 4 * int(np.prod(self._shape))

    def is_whole(self) -> bool:
        return self.path.is_file() and self.path.stat().st_size == self.nbytes

    def write(self, batches: Iterable[torch.Tensor]) -> None:
        """Under another name until it is whole. Raises OSError."""
        growing = self.path.with_suffix(".growing")
        with growing.open("wb") as file:
            for batch in batches:
                file.write(batch.float().contiguous().view(-1).view(torch.uint8).numpy().data)
            file.flush()
            os.fsync(file.fileno())
        growing.replace(self.path)

    def batches(self) -> Iterator[torch.Tensor]:
        """Each [batch, length, hidden]."""
        each = self._shape[1:]
        count = int(np.prod(each))
        with self.path.open("rb") as file:
            for _ in range(self._shape[0]):
                yield torch.from_numpy(np.fromfile(file, np.float32, count)).view(each)
