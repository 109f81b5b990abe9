"""Tensors of a few bytes that say how others are to be read: shapes, settings. Read while a load is planned."""

from __future__ import annotations

import json
from typing import Any, Final

import torch

from headway.artifacts.card import TensorInfo
from headway.errors import ArtifactError

_MOST_BYTES: Final = 1 << 16


def small_integers(info: TensorInfo) -> list[int]:
    """Of an I32 or I64 tensor. Raises ArtifactError (`packed_dtype`, `packed_shape`, `unreadable_file`)."""
    dtype = {"I32": torch.int32, "I64": torch.int64}.get(info.dtype)
    if dtype is None:
        raise ArtifactError(f"{info.name} is stored as {info.dtype}, not as I32 or I64", reason="packed_dtype", param=info.name)
    found: list[int] = torch.frombuffer(bytearray(_bytes(info)), dtype=dtype).tolist() if info.nbytes else []
    return found


def small_object(info: TensorInfo) -> dict[str, Any]:
    """Of a tensor whose bytes are JSON. Raises ArtifactError (`packed_values`, `packed_shape`, `unreadable_file`)."""
    try:
        found = json.loads(_bytes(info))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ArtifactError(f"{info.file}: tensor {info.name} must hold a JSON object", reason="packed_values", param=info.name)
    return found


def _bytes(info: TensorInfo) -> bytes:
    if info.nbytes > _MOST_BYTES:
        raise ArtifactError(
            f"{info.file}: tensor {info.name} has {info.nbytes} bytes, expected at most {_MOST_BYTES}", reason="packed_shape", param=info.name
        )
    try:
        with info.file.open("rb") as file:
            file.seek(info.offset)
            raw = file.read(info.nbytes)
    except OSError as error:
        raise ArtifactError(f"{info.file} cannot be read: {error.strerror}", reason="unreadable_file", param=str(info.file)) from None
    if len(raw) != info.nbytes:
        raise ArtifactError(f"{info.file}: the file ends within tensor {info.name}", reason="truncated", param=str(info.file))
    return raw
