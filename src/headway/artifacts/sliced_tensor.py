"""SlicedTensor: the part of a stored tensor that one of several processes reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from headway.artifacts.card import TensorInfo
from headway.artifacts.gguf_types import BLOCK_TYPE_BY_NAME

Ranges = tuple[range, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SlicedTensor(TensorInfo):
    """`kept`: of every dimension of `whole` the entries that are read, in their order; the last one is counted in numbers, of which
    blocks hold several. `shape` and `nbytes` are those of the part; `file` and `offset` are where the whole begins."""

    whole: TensorInfo
    kept: tuple[Ranges, ...]

    def of(self, raw: torch.Tensor) -> torch.Tensor:
        """The bytes of the whole, uint8 [whole.nbytes] -> those of the part, uint8 [nbytes]. A view where the part lies in one piece."""
        elements, nbytes = _block(self.whole)
        per_row = self.whole.shape[-1] // elements * nbytes
        part = raw.view(*self.whole.shape[:-1], per_row)
        for dim, (ranges, size) in enumerate(zip(self.kept, self.whole.shape, strict=True)):
            if ranges == (range(size),):
                continue
            if dim == len(self.kept) - 1:
                ranges = tuple(range(each.start // elements * nbytes, each.stop // elements * nbytes) for each in ranges)
            pieces = [part.narrow(dim, each.start, len(each)) for each in ranges]
            part = pieces[0] if len(pieces) == 1 else torch.cat(pieces, dim)
        return part.contiguous().view(-1)

    def item(self, index: int) -> SlicedTensor:
        """Entry `index` of the first dimension, which is not cut."""
        nbytes = self.whole.nbytes // self.whole.shape[0]
        entry = replace(self.whole, shape=self.whole.shape[1:], nbytes=nbytes, offset=self.whole.offset + index * nbytes)
        return sliced(entry, self.kept[1:])


def sliced(whole: TensorInfo, kept: Sequence[Ranges]) -> SlicedTensor:
    """Raises ValueError where `kept` parts numbers that are stored in one block."""
    elements, nbytes = _block(whole)
    if any(each.start % elements or each.stop % elements for each in kept[-1]):
        raise ValueError(f"{whole.dtype} stores {elements} numbers in a block, which {kept[-1]} would cut")
    shape = tuple(sum(map(len, ranges)) for ranges in kept)
    count = 1
    for size in shape:
        count *= size
    return SlicedTensor(
        name=whole.name, dtype=whole.dtype, shape=shape, nbytes=count // elements * nbytes, file=whole.file, offset=whole.offset,
        whole=whole, kept=tuple(kept),
    )  # fmt: skip


def _block(info: TensorInfo) -> tuple[int, int]:
    """Numbers and bytes of what can only be read together."""
    block = BLOCK_TYPE_BY_NAME.get(info.dtype)
    return (1, info.nbytes // max(info.elements, 1)) if block is None else (block.elements, block.nbytes)
