"""Which stored formats can be read, decided from the card before anything is allocated."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from headway.artifacts.card import ModelCard, TensorInfo
from headway.errors import ArtifactError, NotBuiltError
from headway.quantization.dense import DENSE_DTYPES
from headway.quantization.gguf.unpackers import UNPACKERS
from headway.quantization.packed_weight import PackedTensor

READABLE: Final = (*DENSE_DTYPES, *UNPACKERS)
_FIX: Final = "Use the model's unquantized safetensors, or a GGUF file in one of these types."


def check_quantization(card: ModelCard) -> None:
    """Refuse checkpoints whose tensors are packed weights, where only plain ones and GGUF blocks are read.

    Raises NotBuiltError (`quantization_not_built`).
    """
    method = None if card.quantization is None else str(card.quantization.get("quant_method"))
    if method not in (None, "gguf"):
        raise NotBuiltError(
            f"{card.reference} is quantized with {method!r:.60}; models of this kind are read from unquantized safetensors and GGUF:"
            " packed weights are only read for language models that Headway runs natively",
            reason="quantization_not_built", param="quantization", fix=_FIX,
        )  # fmt: skip


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
