"""The header of a safetensors file, read and checked without touching tensor data.

Format: 8 bytes little-endian header length, JSON header, data. Stricter than needed for reading and exactly as strict
as the safetensors library: the tensors must cover the data without gaps, and nothing may follow. A reader of our own
because the library answers every damage with one of a few words and no numbers.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from headway.artifacts.card import TensorInfo
from headway.artifacts.foreign_file import HEAD_BYTES, foreign_error, foreign_kind, regular_file_size
from headway.errors import ArtifactError

MAX_HEADER_BYTES: Final = 100_000_000  # the limit of the safetensors library
MAX_DIMS: Final = 32
_MAX_BYTES: Final = 1 << 62

# dtype -> bits per element
DTYPE_BITS: Final[dict[str, int]] = {
    "BOOL": 8, "U8": 8, "I8": 8, "U16": 16, "I16": 16, "U32": 32, "I32": 32, "U64": 64, "I64": 64,
    "F64": 64, "F32": 32, "F16": 16, "BF16": 16, "C64": 64,
    "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8,
    "F6_E2M3": 6, "F6_E3M2": 6, "F4": 4,
}  # fmt: skip

_REFETCH = "Download the file again."


@dataclass(frozen=True, slots=True)
class SafetensorsHeader:
    """One file: its tensors in file order and the free text of `__metadata__`."""

    path: Path
    tensors: Mapping[str, TensorInfo]
    metadata: Mapping[str, str]
    size: int


def read_safetensors_header(path: Path) -> SafetensorsHeader:
    """Read and check the header of `path`.

    Raises ArtifactError with reason `truncated`, `trailing_bytes`, `lfs_pointer`, `html_page`, `empty_file`,
    `header_length`, `header_json`, `unknown_dtype`, `tensor_entry`, `tensor_gap`, ...
    """
    size = regular_file_size(path, "a safetensors file")
    try:
        with path.open("rb") as file:
            raw = _header_bytes(path, file, size)
    except OSError as error:
        raise ArtifactError(
            f"{path} cannot be read: {error.strerror}", reason="unreadable_file", param=str(path)
        ) from None
    entries = _parse_json(path, raw)
    metadata = _free_text(path, entries.pop("__metadata__", {}))
    data_start = 8 + len(raw)
    tensors = [_tensor(path, name, entry, data_start) for name, entry in entries.items()]
    tensors.sort(key=lambda tensor: (tensor.offset, tensor.nbytes))
    _check_coverage(path, tensors, data_start, size)
    return SafetensorsHeader(path, {tensor.name: tensor for tensor in tensors}, metadata, size)


def _bad(path: Path, message: str, reason: str, fix: str | None = None) -> ArtifactError:
    return ArtifactError(f"{path}: {message}", reason=reason, param=str(path), fix=fix)


def _header_bytes(path: Path, file: BinaryIO, size: int) -> bytes:
    head = file.read(HEAD_BYTES)
    # A header starts with "{" after the length; anything that does not is told apart by what it is.
    if head[8:9] != b"{" and (size < 8 or foreign_kind(head) is not None):
        raise foreign_error(
            path,
            "a safetensors file",
            head,
            size,
            reason="truncated",
            otherwise=f"the header length alone needs 8 bytes, the file has {size}",
        )
    (length,) = struct.unpack_from("<Q", head)
    if length > MAX_HEADER_BYTES:
        raise foreign_error(
            path,
            "a safetensors file",
            head,
            size,
            reason="header_length",
            otherwise=f"its header claims {length} bytes, the limit is {MAX_HEADER_BYTES}",
        )
    if length > size - 8:
        raise _bad(
            path,
            f"the file ends inside its header: the header needs {length + 8} bytes, the file has {size}"
            f" ({length + 8 - size} too few); the download did not finish",
            "truncated",
            _REFETCH,
        )
    if length < 2 or head[8:9] != b"{":
        raise foreign_error(
            path,
            "a safetensors file",
            head,
            size,
            reason="header_json",
            otherwise=f"the header must be JSON that starts with '{{', found {head[8:16]!r}",
        )
    file.seek(8)
    return file.read(length)


def _parse_json(path: Path, raw: bytes) -> dict[str, Any]:
    def no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) != len(pairs):
            raise ValueError("a name is there twice")
        return result

    def no_constants(word: str) -> None:
        raise ValueError(f"{word} is not JSON")

    try:
        header = json.loads(raw, object_pairs_hook=no_duplicates, parse_constant=no_constants)
    except (ValueError, RecursionError) as error:
        raise _bad(
            path, f"the header is not valid JSON ({error}); the file is damaged", "header_json", _REFETCH
        ) from None
    if not isinstance(header, dict):
        raise _bad(path, "the header must be a JSON object", "header_json", _REFETCH)
    return header


def _free_text(path: Path, metadata: Any) -> dict[str, str]:
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise _bad(path, "__metadata__ must map strings to strings", "header_json")
    return metadata


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= _MAX_BYTES


def _tensor(path: Path, name: str, entry: Any, data_start: int) -> TensorInfo:
    shown = ascii(name if len(name) <= 80 else f"{name[:77]}...")
    if not isinstance(entry, dict) or not {"dtype", "shape", "data_offsets"} <= entry.keys():
        raise _bad(path, f"tensor {shown} must have dtype, shape and data_offsets", "tensor_entry")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    bits = DTYPE_BITS.get(dtype) if isinstance(dtype, str) else None
    if bits is None:
        known = ", ".join(DTYPE_BITS)
        raise _bad(path, f"tensor {shown} has the unknown dtype {dtype!r:.40}; known are {known}", "unknown_dtype")
    if not isinstance(shape, list) or len(shape) > MAX_DIMS or not all(map(_is_count, shape)):
        raise _bad(path, f"tensor {shown} has the impossible shape {shape!r:.80}", "tensor_entry")
    if (
        not isinstance(offsets, list)
        or len(offsets) != 2
        or not all(map(_is_count, offsets))
        or offsets[0] > offsets[1]
    ):
        raise _bad(path, f"tensor {shown} has the impossible data_offsets {offsets!r:.80}", "tensor_entry")
    elements = 1
    for dim in shape:
        elements *= dim
    nbytes = offsets[1] - offsets[0]
    if elements * bits != nbytes * 8:
        raise _bad(
            path,
            f"tensor {shown} of dtype {dtype} and shape {shape} needs {elements * bits / 8:.12g} bytes,"
            f" its offsets give it {nbytes}",
            "tensor_entry",
        )
    return TensorInfo(name, dtype, tuple(shape), nbytes, path, data_start + offsets[0])


def _check_coverage(path: Path, tensors: list[TensorInfo], data_start: int, size: int) -> None:
    """Tensors in order of offset must follow each other without gap or overlap and end at the end of the file."""
    end = data_start
    for tensor in tensors:
        if tensor.offset != end:
            kind = "overlaps the tensor before it by" if tensor.offset < end else "leaves a gap before it of"
            raise _bad(path, f"tensor {ascii(tensor.name)[:80]} {kind} {abs(tensor.offset - end)} bytes", "tensor_gap")
        end += tensor.nbytes
    if size < end:
        raise _bad(
            path,
            f"the header promises {end} bytes, the file has {size}: {end - size} bytes are missing,"
            " the download did not finish",
            "truncated",
            _REFETCH,
        )
    if size > end:
        raise _bad(
            path,
            f"the header promises {end} bytes, the file has {size}: {size - end} bytes follow that belong to nothing",
            "trailing_bytes",
            _REFETCH,
        )
