"""How the weights of a checkpoint are stored, in one line for people, and what a device must be able to do for it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from headway.artifacts.card import TensorInfo
from headway.quantization.gguf.unpackers import UNPACKERS
from headway.quantization.packed_weight import PackedTensor
from headway.quantization.stored_as import PLAIN, Needs, StoredFormat

_SHOWN: Final = 4


def stored_format(tensors: Iterable[TensorInfo]) -> StoredFormat:
    """Of the tensors of a logical card."""
    titles: set[str] = set()
    needs: set[Needs] = set()
    blocks: set[str] = set()
    for tensor in tensors:
        if isinstance(tensor, PackedTensor):
            titles.add(tensor.layout.title)
            needs |= {tensor.layout.needs} if tensor.layout.needs is not None else set()
        elif tensor.dtype in UNPACKERS:
            blocks.add(tensor.dtype)
    if blocks:
        titles.add(f"GGUF {', '.join(sorted(blocks))}")
    if not titles:
        return PLAIN
    shown = sorted(titles)[:_SHOWN]
    more = f"; {len(titles) - _SHOWN} more" if len(titles) > _SHOWN else ""
    return StoredFormat("; ".join(shown) + more, tuple(sorted(needs)))
