"""WeightReader: stored tensors of a card -> torch tensors, one at a time, with a small memory footprint."""

from __future__ import annotations

import math
import mmap
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Final, TypeVar

import torch

from headway.artifacts.card import ModelCard, TensorInfo
from headway.artifacts.gguf_types import BLOCK_TYPE_BY_NAME
from headway.artifacts.sliced_tensor import SlicedTensor
from headway.errors import ArtifactError
from headway.kernels.integer_weight import IntegerWeight
from headway.quantization.dense import DENSE_DTYPES, PART_DTYPES
from headway.quantization.gguf.unpackers import INTEGER_BLOCKS, UNPACKERS
from headway.quantization.logical_card import logical_card
from headway.quantization.packed_weight import PackedTensor, Parts, shard
from headway.quantization.supported import check_types

# Weights unpacked at once: 1 MiB of float32, so that the passes over them stay in the L2 cache.
_CHUNK_WEIGHTS: Final = 1 << 18
_ROWS: Final = 64  # kernels pack so many rows together, or a part of them

Unpacked = TypeVar("Unpacked")


class WeightReader(AbstractContextManager["WeightReader"]):
    """Reads tensors through memory maps; the pages of a tensor are given back once it is read.

    Packed weights have the names that a model gives them. Opening a card raises what `logical_card` raises; a mapping is taken as it is.
    Close it, or use it as a context manager.
    """

    def __init__(self, source: ModelCard | Mapping[str, TensorInfo]):
        self._tensors = logical_card(source).tensors if isinstance(source, ModelCard) else source
        self._maps: dict[Path, mmap.mmap] = {}

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of all files. Each is unmapped with its last view: torch does not keep a map from being closed under a tensor, and an
        error that is on its way may hold one."""
        self._maps.clear()

    def tensor(self, name: str, dtype: torch.dtype | None = None) -> torch.Tensor:
        """The tensor `name` with its stored shape, as a copy of its own.

        `dtype` None keeps the stored type of plain numbers and unpacks blocks to float32. Blocks are unpacked a chunk at
        a time, so a `dtype` of 16 bits never needs the whole tensor in float32.

        Raises ArtifactError: `missing_tensor`, `unsupported_tensor_type`, `truncated`, `tensor_size`.
        """
        info = self._tensors.get(name)
        if info is None:
            raise ArtifactError(f"the checkpoint has no tensor {name!r}", reason="missing_tensor", param=name)
        check_types((info,))
        dense = DENSE_DTYPES.get(info.dtype)
        out = torch.empty(info.shape, dtype=dtype or dense or torch.float32)
        self.read_into(info, out)
        return out

    def read_into(self, info: TensorInfo, out: torch.Tensor) -> None:
        """Fill `out` (contiguous, as many elements as stored) with the tensor, converted to the dtype of `out`."""
        if isinstance(info, PackedTensor):
            self._unpack_into(info, out)
            return
        block = BLOCK_TYPE_BY_NAME[info.dtype]
        _check_size(info, block.elements, block.nbytes)
        mapped = self._map(info)
        # The view pins the map while it lives, so it must die before the pages are given back.
        _decode(_stored(mapped, info), info.dtype, out.view(-1))
        _give_back(mapped, info)

    def integers(self, info: TensorInfo) -> Iterator[IntegerWeight]:
        """The rows of a matrix of which `integer_form` knows the form, a chunk of them at a time: a multiple of 64 but in the last."""
        width = info.shape[1]
        if isinstance(info, PackedTensor):
            assert info.layout.integers is not None
            yield from (chunk for _, chunk in self._unpacked(info, info.layout.integers.read, _ROWS))
            return
        block, unpack = BLOCK_TYPE_BY_NAME[info.dtype], INTEGER_BLOCKS[info.dtype].integers
        _check_size(info, block.elements, block.nbytes)
        mapped = self._map(info)
        raw = _stored(mapped, info).view(info.shape[0], -1)
        for rows in torch.split(raw, _rows_at_once(width, _ROWS)):
            yield unpack(rows.reshape(-1, block.nbytes)).folded(width)
        del raw, rows  # views pin the map
        _give_back(mapped, info)

    def _unpack_into(self, info: PackedTensor, out: torch.Tensor) -> None:
        """A chunk of output rows at a time, so that no whole matrix is needed in float32."""
        target = out.view(info.shape)
        for rows, values in self._unpacked(info, info.layout.dequantize, 1):
            target[rows.start : rows.stop].copy_(values)

    def _unpacked(self, info: PackedTensor, unpack: Callable[[Parts, range], Unpacked], multiple: int) -> Iterator[tuple[range, Unpacked]]:
        layout, (rows, width) = info.layout, info.shape
        maps = {ending: self._map(part) for ending, part in info.stored.items()}
        parts = {ending: _part(maps[ending], part) for ending, part in info.stored.items()}
        step = rows if layout.whole else _rows_at_once(width, math.lcm(layout.step, multiple))
        try:
            for start in range(0, rows, step):
                stop = min(start + step, rows)
                cut = parts if layout.whole else shard(layout, parts, "out", start, stop)
                yield range(start, stop), unpack(cut, range(start, stop))
        except ArtifactError as error:
            raise ArtifactError(f"{info.file}: {info.name}: {error.message}", reason=error.reason, param=info.name) from None
        # Views pin the maps while they live.
        parts.clear()
        cut = {}
        for ending, part in info.stored.items():
            _give_back(maps[ending], part)

    def _map(self, info: TensorInfo) -> mmap.mmap:
        mapped = self._maps.get(info.file)
        if mapped is None:
            with info.file.open("rb") as file:
                # Copy-on-write only because torch wants a writable buffer; nothing writes.
                mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
            self._maps[info.file] = mapped
        end = info.offset + _whole(info).nbytes
        if end > len(mapped):
            raise ArtifactError(
                f"{info.file}: tensor {info.name} ends at byte {end}, the file at {len(mapped)}",
                reason="truncated", param=str(info.file), fix="Download the file again.",
            )  # fmt: skip
        return mapped


def _rows_at_once(width: int, multiple: int) -> int:
    return max(_CHUNK_WEIGHTS // width // multiple, 1) * multiple


def _whole(info: TensorInfo) -> TensorInfo:
    return info.whole if isinstance(info, SlicedTensor) else info


def _stored(mapped: mmap.mmap, info: TensorInfo) -> torch.Tensor:
    """uint8 [nbytes]: a view of the map, or a copy of what lies there in pieces."""
    raw = torch.frombuffer(mapped, dtype=torch.uint8, count=_whole(info).nbytes, offset=info.offset)
    return info.of(raw) if isinstance(info, SlicedTensor) else raw


def _part(mapped: mmap.mmap, part: TensorInfo) -> torch.Tensor:
    return _as_dtype(_stored(mapped, part), PART_DTYPES[part.dtype]).view(part.shape)


def _check_size(info: TensorInfo, elements: int, nbytes: int) -> None:
    blocks, rest = divmod(info.elements, elements)
    if rest or blocks * nbytes != info.nbytes or (info.shape and info.shape[-1] % elements):
        raise ArtifactError(
            f"{info.file}: tensor {info.name} of type {info.dtype} and shape {info.shape} cannot take {info.nbytes} bytes:"
            f" {elements} weights of a row take {nbytes}",
            reason="tensor_size", param=str(info.file), fix="Download the file again.",
        )  # fmt: skip


def _decode(raw: torch.Tensor, stored: str, out: torch.Tensor) -> None:
    dense = DENSE_DTYPES.get(stored)
    if dense is not None:
        out.copy_(_as_dtype(raw, dense))
        return
    block, unpack = BLOCK_TYPE_BY_NAME[stored], UNPACKERS[stored]
    rows = _CHUNK_WEIGHTS // block.elements
    targets = torch.split(out, rows * block.elements)
    for packed, target in zip(torch.split(raw.view(-1, block.nbytes), rows), targets, strict=True):
        target.copy_(unpack(packed).view(-1))


def _as_dtype(raw: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    # A view needs an aligned start; safetensors does not promise one.
    aligned = raw if raw.data_ptr() % dtype.itemsize == 0 else raw.clone()
    return aligned.view(dtype)


def _give_back(mapped: mmap.mmap, info: TensorInfo) -> None:
    """Drop the whole pages inside the tensor; the kernel reads them again if anyone asks."""
    first = -(-info.offset // mmap.PAGESIZE) * mmap.PAGESIZE
    length = (info.offset + _whole(info).nbytes) // mmap.PAGESIZE * mmap.PAGESIZE - first
    if length > 0 and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED, first, length)
