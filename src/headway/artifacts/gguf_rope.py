"""RoPE scaling of a GGUF file in Hugging Face spelling."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from headway.artifacts.card import TensorInfo
from headway.errors import ArtifactError

MAX_FACTORS: Final = 4_096
_NOTHING: Final = ("none", "")


def rope_scaling(
    metadata: Mapping[str, Any], tensors: Mapping[str, TensorInfo], name: str, config: Mapping[str, Any]
) -> dict[str, Any] | None:
    """The `rope_scaling` dict, or None when positions are not scaled.

    Llama 3 files carry their scaling as a tensor `rope_freqs.weight` of divisors of the inverse frequencies. That is
    what HF "longrope" computes (inv_freq / factor) with both lists equal and an attention factor of 1, so it is
    expressed like that, exactly. Phi-3 files carry two such tensors.

    Raises ArtifactError (`gguf_metadata`).
    """
    context = config.get("max_position_embeddings")
    original = metadata.get(f"{name}.rope.scaling.original_context_length", context)
    if (single := tensors.get("rope_freqs.weight")) is not None:
        factors = _factors(single)
        return {
            "rope_type": "longrope",
            "short_factor": factors,
            "long_factor": factors,
            "attention_factor": 1.0,
            "original_max_position_embeddings": context,
        }
    long, short = tensors.get("rope_factors_long.weight"), tensors.get("rope_factors_short.weight")
    if long is not None and short is not None:
        scaling = {
            "rope_type": "longrope",
            "short_factor": _factors(short),
            "long_factor": _factors(long),
            "original_max_position_embeddings": original,
        }
        attention = metadata.get(f"{name}.rope.scaling.attn_factor")
        return scaling | ({"attention_factor": attention} if isinstance(attention, float) else {})
    kind = metadata.get(f"{name}.rope.scaling.type", "none")
    factor = metadata.get(f"{name}.rope.scaling.factor")
    if not isinstance(kind, str):
        raise ArtifactError(
            f"{name}.rope.scaling.type must be a word, found {kind!r:.60}",
            reason="gguf_metadata",
            param="rope.scaling.type",
            fix="The file was made by a broken converter; download or convert it again.",
        )
    if kind in _NOTHING or not isinstance(factor, int | float) or factor <= 0:
        return None
    scaling = {"rope_type": kind, "factor": float(factor)}
    if kind == "yarn":
        scaling["original_max_position_embeddings"] = original
        for field, key in (("beta_fast", "yarn_beta_fast"), ("beta_slow", "yarn_beta_slow")):
            value = metadata.get(f"{name}.rope.scaling.{key}")
            if isinstance(value, int | float):
                scaling[field] = float(value)
    return scaling


def _factors(tensor: TensorInfo) -> list[float]:
    """Read the few numbers of a factor tensor; the only tensor data that inspection reads."""
    if tensor.dtype != "F32" or not 0 < tensor.elements <= MAX_FACTORS:
        raise ArtifactError(
            f"{tensor.file}: {tensor.name} must hold 1 to {MAX_FACTORS} F32 numbers, found {tensor.elements} {tensor.dtype}",
            reason="gguf_metadata",
            param=str(tensor.file),
        )
    with tensor.file.open("rb") as file:
        file.seek(tensor.offset)
        values = np.frombuffer(file.read(tensor.nbytes), "<f4")
    if not np.isfinite(values).all() or (values <= 0).any():
        raise ArtifactError(
            f"{tensor.file}: {tensor.name} must hold positive numbers", reason="gguf_metadata", param=str(tensor.file)
        )
    return [float(value) for value in values]
