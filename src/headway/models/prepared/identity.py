"""Which weights a file of prepared weights holds: the name that it is found by, and whether there is anything to prepare."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from headway.artifacts.card import TensorInfo
from headway.artifacts.remembered_digests import remembered_sha256
from headway.artifacts.sliced_tensor import SlicedTensor
from headway.models.fill import Stack
from headway.models.sized_config import SizedConfig
from headway.quantization.dense import DENSE_DTYPES
from headway.quantization.packed_weight import PackedTensor
from headway.version import __version__

PREPARATION: Final = 2
"""Raise it with every change of unpacking, transforms or layout that changes numbers."""

SMALLEST_BYTES: Final = 16 << 20
"""Below that, preparing takes less time than opening one more file."""


def worth_keeping(stacks: Sequence[Stack], tensors: Mapping[str, TensorInfo]) -> bool:
    """Whether most of the weights differ from what the checkpoint stores. Where they do not, the checkpoint itself is mapped. Never for
    a rank's slices: the name of what is kept follows from whole files, which no rank reads."""
    changed = same = nbytes = 0
    for stack in stacks:
        for part in stack.parts:
            stored = part.stored(tensors)
            pieces = stored.stored.values() if isinstance(stored, PackedTensor) else (stored,)
            if any(isinstance(piece, SlicedTensor) for piece in pieces):
                return False
            if DENSE_DTYPES.get(stored.dtype) is stack.dtype:
                same += stored.elements
            else:
                changed += stored.elements
                nbytes += stored.elements * stack.dtype.itemsize
    return nbytes >= SMALLEST_BYTES and changed > same


def preparation_key(
    stacks: Sequence[Stack], tensors: Mapping[str, TensorInfo], config: SizedConfig, notes: Path, rounding: str | None = None
) -> str:
    """64 hex digits that follow from the bytes of the weight files, from what is made of each tensor of them, and from the
    version that makes it. `notes` remembers digests of files. Raises OSError when a weight file cannot be read."""
    files: dict[Path, int] = {}
    recipe = []
    for stack in stacks:
        parts = []
        for part in stack.parts:
            stored = part.stored(tensors)
            pieces = stored.stored.values() if isinstance(stored, PackedTensor) else (stored,)
            places = [[files.setdefault(piece.file, len(files)), piece.offset] for piece in pieces]
            parts.append([places, stored.dtype, stored.shape, part.rule.transform])
        recipe.append([stack.module, stack.kind, str(stack.dtype), stack.shape, parts])
    identity = {
        "version": [__version__, PREPARATION],
        "files": [remembered_sha256(file, notes) for file in files],
        "heads": [config.num_heads, config.num_kv_heads, config.head_dim],  # transforms ask for them
        "stacks": recipe,
        "rounding": rounding,
    }
    return hashlib.sha256(json.dumps(identity, separators=(",", ":")).encode()).hexdigest()
