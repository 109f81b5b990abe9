"""The header of a GGUF file (versions 2 and 3), read without touching tensor data.

The file comes from outside, so every count, length and offset is checked against the limits below and against the
file size before anything is allocated. Format: ggml/docs/gguf.md.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from headway.artifacts.card import TensorInfo
from headway.artifacts.foreign_file import HEAD_BYTES, foreign_error, regular_file_size
from headway.artifacts.gguf_types import ARRAY, BLOCK_TYPES, BOOL, REMOVED_TYPES, SCALAR_TYPES, STRING
from headway.errors import ArtifactError

MAGIC: Final = b"GGUF"
VERSIONS: Final = (2, 3)

MAX_KEYS: Final = 65_536
MAX_TENSORS: Final = 262_144
MAX_KEY_BYTES: Final = 65_535  # of the specification
MAX_TENSOR_NAME_BYTES: Final = 1_024
MAX_STRING_BYTES: Final = 64 << 20
MAX_STRINGS: Final = 8 << 20  # in one array; the largest vocabularies have under a million tokens
MAX_NUMBERS: Final = 64 << 20  # in one array
MAX_NESTING: Final = 4
MAX_ARRAYS: Final = 131_072  # nested ones included; each costs more memory than its bytes in the file
MAX_DIMS: Final = 4
MAX_ALIGNMENT: Final = 1 << 20
_MAX_ELEMENTS: Final = 1 << 62

_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """One GGUF file. Metadata arrays of strings are lists, arrays of numbers and truth values are numpy arrays, nested arrays lists.

    `data_end` is where the last tensor ends; bytes after it (beyond the padding) are no part of the model.
    """

    path: Path
    version: int
    alignment: int
    metadata: Mapping[str, Any]
    tensors: Mapping[str, TensorInfo]
    data_offset: int
    data_end: int
    size: int


def read_gguf_header(path: Path) -> GgufHeader:
    """Read and check the header of `path`.

    Raises ArtifactError; the reason tells the kind (`not_gguf`, `lfs_pointer`, `truncated`, `gguf_version`, ...).
    """
    size = regular_file_size(path, "a GGUF file")
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
            _check_magic(path, head, size)
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return _Parser(path, data, size).header()
    except OSError as error:
        raise ArtifactError(
            f"{path} cannot be read: {error.strerror}", reason="unreadable_file", param=str(path)
        ) from None


def _check_magic(path: Path, head: bytes, size: int) -> None:
    if head[:4] == MAGIC:
        return
    if head[:4].upper() == MAGIC:
        otherwise, reason = "the first four letters must be 'GGUF' in capitals", "gguf_wrong_case"
    elif head[8:10] == b'{"':
        raise foreign_error(
            path,
            "a GGUF file",
            head,
            size,
            otherwise="it looks like a safetensors file",
            reason="safetensors_file",
            fix="Give it the ending `.safetensors`, put it beside its config.json and name the folder.",
        )
    elif len(head) < 4:
        otherwise, reason = "it is shorter than the four letters 'GGUF'", "truncated"
    else:
        otherwise, reason = "it does not start with 'GGUF'", "not_gguf"
    raise foreign_error(path, "a GGUF file", head, size, otherwise=otherwise, reason=reason)


class _Parser:
    """A position in the mapped file. Reading past the end raises `truncated`."""

    __slots__ = ("arrays", "at", "data", "path", "size")

    def __init__(self, path: Path, data: mmap.mmap, size: int):
        self.path = path
        self.data = data
        self.size = min(size, len(data))
        self.at = 4
        self.arrays = 0

    def bad(self, message: str, reason: str = "gguf_invalid", fix: str | None = None) -> ArtifactError:
        return ArtifactError(f"{self.path}: {message}", reason=reason, param=str(self.path), fix=fix)

    def truncated(self, needed: int, what: str) -> ArtifactError:
        return self.bad(
            f"the file ends inside {what}: {needed} bytes are needed, {self.size} are there"
            f" ({needed - self.size} too few); the download or export did not finish",
            "truncated",
            "Download the file again.",
        )

    def take(self, nbytes: int, what: str) -> int:
        """Advance over `nbytes` and return where they start."""
        start = self.at
        if nbytes > self.size - start:
            raise self.truncated(start + nbytes, what)
        self.at = start + nbytes
        return start

    def u32(self, what: str) -> int:
        return int(_U32.unpack_from(self.data, self.take(4, what))[0])

    def u64(self, what: str) -> int:
        return int(_U64.unpack_from(self.data, self.take(8, what))[0])

    def text(self, limit: int, what: str) -> str:
        length = self.u64(what)
        if length > limit:
            raise self.bad(f"{what} claims {length} bytes, the limit is {limit}")
        start = self.take(length, what)
        return self.data[start : start + length].decode("utf-8", "replace")

    def header(self) -> GgufHeader:
        version = self.u32("the version")
        if version not in VERSIONS:
            if version == 1:
                found = "version 1, which was replaced in 2023"
            elif int.from_bytes(version.to_bytes(4, "little"), "big") in (1, *VERSIONS):
                found = "a big-endian file"
            else:
                found = f"version {version}"
            fix = "Convert the model again with a current llama.cpp, on a little-endian machine."
            raise self.bad(f"expected GGUF version 2 or 3, found {found}", "gguf_version", fix)
        tensor_count = self.u64("the tensor count")
        key_count = self.u64("the key count")
        # 24 bytes is the shortest possible tensor entry with one dimension, 13 the shortest key.
        for count, limit, least, what in (
            (tensor_count, MAX_TENSORS, 24, "tensors"),
            (key_count, MAX_KEYS, 13, "metadata keys"),
        ):
            if count > limit:
                raise self.bad(f"claims {count} {what}, the limit is {limit}")
            if count * least > self.size - self.at:
                raise self.truncated(self.at + count * least, f"its list of {count} {what}")
        metadata = self._metadata(key_count)
        alignment = metadata.get("general.alignment", 32)
        if not isinstance(alignment, int) or not 0 < alignment <= MAX_ALIGNMENT or alignment & (alignment - 1):
            raise self.bad(f"general.alignment must be a power of two up to {MAX_ALIGNMENT}, found {alignment!r}")
        entries = [self._tensor_entry() for _ in range(tensor_count)]
        data_offset = -(-self.at // alignment) * alignment
        tensors, data_end = self._place(entries, data_offset, alignment)
        return GgufHeader(self.path, version, alignment, metadata, tensors, data_offset, data_end, self.size)

    def _metadata(self, count: int) -> dict[str, Any]:
        metadata: dict[str, Any] = {}
        for _ in range(count):
            key = self.text(MAX_KEY_BYTES, "a metadata key")
            if key in metadata:
                raise self.bad(f"metadata key {_shown(key)} is there twice")
            metadata[key] = self._value(self.u32("a value type"), f"the value of {_shown(key)}", 0)
        return metadata

    def _value(self, kind: int, what: str, depth: int) -> Any:
        if kind == STRING:
            return self.text(MAX_STRING_BYTES, what)
        if kind == BOOL:
            return self._bool(self.data[self.take(1, what)], what)
        if kind == ARRAY:
            return self._array(what, depth)
        return self._numbers(kind, 1, what)[0].item()

    def _bool(self, byte: int, what: str) -> bool:
        if byte > 1:
            raise self.bad(f"{what} is a truth value and must be 0 or 1, found {byte}")
        return bool(byte)

    def _numbers(self, kind: int, count: int, what: str) -> np.ndarray[Any, np.dtype[Any]]:
        code = SCALAR_TYPES.get(kind)
        if code is None:
            raise self.bad(f"{what} has the unknown type {kind}")
        dtype = np.dtype(code)
        start = self.take(count * dtype.itemsize, what)
        # A copy: the mapping is closed when the header is read.
        return np.frombuffer(self.data[start : self.at], dtype)

    def _array(self, what: str, depth: int) -> Any:
        if depth >= MAX_NESTING:
            raise self.bad(f"{what} nests arrays deeper than {MAX_NESTING}")
        self.arrays += 1
        if self.arrays > MAX_ARRAYS:
            raise self.bad(f"the metadata holds more than {MAX_ARRAYS} arrays")
        kind = self.u32(what)
        count = self.u64(what)
        if kind == STRING:
            return self._strings(count, what)
        limit = MAX_STRINGS if kind == ARRAY else MAX_NUMBERS
        least = 12 if kind == ARRAY else 1
        self._check_count(count, limit, least, what)
        if kind == ARRAY:
            return [self._array(what, depth + 1) for _ in range(count)]
        if kind == BOOL:
            start = self.take(count, what)
            flags = np.frombuffer(self.data[start : self.at], np.uint8)
            if (flags > 1).any():
                raise self.bad(f"{what} holds truth values, which must be 0 or 1, found {flags.max()}")
            return flags.astype(np.bool_)
        return self._numbers(kind, count, what)

    def _check_count(self, count: int, limit: int, least: int, what: str) -> None:
        if count > limit:
            raise self.bad(f"{what} claims {count} entries, the limit is {limit}")
        if count * least > self.size - self.at:
            raise self.truncated(self.at + count * least, what)

    def _strings(self, count: int, what: str) -> list[str]:
        """The hot loop: a vocabulary has 50,000 to 300,000 strings."""
        self._check_count(count, MAX_STRINGS, 8, what)
        data, at, size, length_of = self.data, self.at, self.size, _U64.unpack_from
        strings: list[str] = []
        for _ in range(count):
            if at + 8 > size:
                raise self.truncated(at + 8, what)
            start = at + 8
            at = start + length_of(data, at)[0]
            if at > size:
                raise self.truncated(at, what)
            strings.append(data[start:at].decode("utf-8", "replace"))
        self.at = at
        return strings

    def _tensor_entry(self) -> tuple[str, tuple[int, ...], int, int]:
        """Name, shape (outermost first), type number, offset from the start of the data."""
        name = self.text(MAX_TENSOR_NAME_BYTES, "a tensor name")
        what = f"the entry of tensor {_shown(name)}"
        n_dims = self.u32(what)
        if n_dims > MAX_DIMS:
            raise self.bad(f"{what} claims {n_dims} dimensions, the limit is {MAX_DIMS}")
        innermost_first = [self.u64(what) for _ in range(n_dims)]
        return name, tuple(reversed(innermost_first)), self.u32(what), self.u64(what)

    def _place(
        self, entries: list[tuple[str, tuple[int, ...], int, int]], data_offset: int, alignment: int
    ) -> tuple[dict[str, TensorInfo], int]:
        """Turn entries into tensors; refuse unknown types, odd shapes, overlap, and data past the end of the file."""
        tensors: dict[str, TensorInfo] = {}
        for name, shape, type_number, offset in entries:
            what = f"tensor {_shown(name)}"
            if name in tensors:
                raise self.bad(f"{what} is there twice")
            block = BLOCK_TYPES.get(type_number)
            if block is None:
                known = (
                    f"{REMOVED_TYPES[type_number]}, which was removed from the format"
                    if type_number in REMOVED_TYPES
                    else "unknown"
                )
                fix = (
                    "Convert the model again with a current llama.cpp."
                    if type_number in REMOVED_TYPES
                    else "Update Headway, or use another quantization of the model."
                )
                raise self.bad(f"{what} has the block type {type_number} ({known})", "gguf_block_type", fix)
            elements = 1
            for dim in shape:
                elements *= dim
            if elements > _MAX_ELEMENTS:
                raise self.bad(f"{what} claims the shape {shape}, which no memory can hold")
            row = shape[-1] if shape else 1
            if row % block.elements:
                raise self.bad(
                    f"{what}: rows of {row} elements do not divide into {block.name} blocks of {block.elements}"
                )
            if offset % alignment:
                raise self.bad(
                    f"{what} starts at offset {offset}, which is not a multiple of the alignment {alignment}"
                )
            nbytes = elements // block.elements * block.nbytes
            tensors[name] = TensorInfo(name, block.name, shape, nbytes, self.path, data_offset + offset)
        end = data_offset if tensors else self.at
        for tensor in sorted(tensors.values(), key=lambda t: (t.offset, t.nbytes)):
            if tensor.offset < end and tensor.nbytes:
                raise self.bad(f"tensor {_shown(tensor.name)} overlaps the tensor before it")
            end = max(end, tensor.offset + tensor.nbytes)
        if end > self.size:
            raise self.truncated(end, "its tensor data")
        return tensors, end


def _shown(name: str) -> str:
    """A name from outside, short and printable."""
    return ascii(name if len(name) <= 80 else f"{name[:77]}...")
