"""What a weight format has to know for checkpoints in it to be read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from headway.artifacts.card import TensorInfo
from headway.quantization.packed_weight import PackedLayout

Stored = Mapping[str, TensorInfo]  # ending of the name -> tensor, all of one module


class CheckpointFormat(Protocol):
    """Made from the quantization section of a checkpoint, which it checks."""

    @property
    def endings(self) -> frozenset[str]:
        """Names, after the module's, of tensors that belong to packed weights."""
        ...

    @property
    def unused(self) -> frozenset[str]:
        """Endings of tensors that are not needed where activations stay as they are; they are left out."""
        ...

    def layout_of(self, module: str, stored: Stored) -> tuple[PackedLayout, tuple[int, int]] | None:
        """How the weight of `module` is packed and its shape [out, in]; None when it is plain. Raises ArtifactError, NotBuiltError."""
        ...
