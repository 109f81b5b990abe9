"""Which stored formats can be read, decided from the card before anything is allocated."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from headway.artifacts.card import TensorInfo
from headway.errors import ArtifactError
from headway.quantization.dense import DENSE_DTYPES
from headway.quantization.gguf.unpackers import UNPACKERS
from headway.quantization.packed_weight import PackedTensor

READABLE: Final = (*DENSE_DTYPES, *UNPACKERS)
_FIX: Final = "Use the model's unquantized safetensors, or a GGUF file in one of these types."


def check_types(tensors: Iterable[TensorInfo]) -> None:
    """Refuse tensors of a type that cannot be unpacked, all named at once.

    Raises ArtifactError (`unsupported_tensor_type`).
    """
    refused = [tensor for tensor in tensors if tensor.dtype not in READABLE and not isinstance(tensor, PackedTensor)]
    if refused:
        types = ", ".join(sorted({tensor.dtype for tensor in refused}))
        raise ArtifactError(
            f"{len(refused)} tensors are stored as {types} (first: {refused[0].name}); supported types: {', '.join(READABLE)}",
            reason="unsupported_tensor_type", param=str(refused[0].file), fix=_FIX,
        )  # fmt: skip
