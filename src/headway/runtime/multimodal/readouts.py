"""Rows of one modality -> vectors. Nothing is padded that the model does not pad itself, so company cannot change a vector."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt
import torch

from headway.runtime.multimodal.image_layout import ImageLayout
from headway.runtime.multimodal.image_rows import image_row
from headway.runtime.row import Row
from headway.runtime.tasks.embeddings import READOUT

FloatArray = npt.NDArray[np.float32]
Features = Callable[[torch.Tensor], torch.Tensor]
_PASS_IMAGES: Final = 16  # in one pass: more are not faster on a CPU, and need memory


class MediaReadout(Protocol):
    """Named by `Row.readout`."""

    def read(self, rows: Sequence[Row]) -> list[FloatArray]:
        """One vector [width] for each row, not normalized. On the device thread."""
        ...

    def probe_row(self, chance: Random, length: int) -> Row:
        """A row of random content; texts have `length` tokens."""
        ...


@dataclass(frozen=True, slots=True)
class TextReadout:
    """`features`: ids int64 [rows, tokens] -> [rows, width]. Rows of one length go together. `padded_to`: the length that the
    model was trained to see, filled with `padding` (SigLIP); None: texts as they are."""

    features: Features
    vocab_size: int
    padded_to: int | None = None
    padding: int = 0

    def row(self, ids: tuple[int, ...], layer: int | None) -> Row:
        return Row(ids, READOUT, extra_cost=0 if self.padded_to is None else self.padded_to - len(ids))

    def read(self, rows: Sequence[Row]) -> list[FloatArray]:
        groups: dict[int, list[int]] = {}
        filled = [row.token_ids + (self.padding,) * ((self.padded_to or 0) - len(row.token_ids)) for row in rows]
        for number, ids in enumerate(filled):
            groups.setdefault(len(ids), []).append(number)
        found: dict[int, FloatArray] = {}
        for numbers in groups.values():
            vectors = self.features(torch.tensor([filled[n] for n in numbers])).float().numpy()
            found.update(zip(numbers, vectors, strict=True))
        return [found[number] for number in range(len(rows))]

    def probe_row(self, chance: Random, length: int) -> Row:
        return self.row(tuple(chance.randrange(self.vocab_size) for _ in range(length)), None)


@dataclass(frozen=True, slots=True)
class ImageReadout:
    """`features`: pixels [images, 3, side, side] of `dtype` -> [images, width]."""

    features: Features
    layout: ImageLayout
    cost: int
    dtype: torch.dtype
    together: int = _PASS_IMAGES

    def read(self, rows: Sequence[Row]) -> list[FloatArray]:
        found: list[FloatArray] = []
        for start in range(0, len(rows), self.together):
            pixels = np.stack([self.layout.seen(row.payload) for row in rows[start : start + self.together]])
            found += list(self.features(torch.from_numpy(pixels).to(self.dtype)).float().numpy())
        return found

    def probe_row(self, chance: Random, length: int) -> Row:
        side = self.layout.side
        noise: Any = np.frombuffer(chance.randbytes(3 * side * side), np.uint8).reshape(3, side, side)
        return image_row(str(chance.random()), noise, self.cost)
