"""Parameters of a checkpoint: weights as the model sees them, packed formats unpacked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headway.artifacts.card import TensorInfo

# Endings of what belongs to a quantization format and is no parameter of the model.
_BOOKKEEPING: Final = (
    ".qzeros", ".scales", ".g_idx", ".weight_scale", ".weight_scale_inv", ".weight_zero_point", ".weight_shape", ".weight_g_idx",
    ".weight_global_scale", ".weight_scale_2", ".input_scale", ".input_zero_point", ".input_global_scale", ".lookup_table", ".absmax", ".quant_map",
    ".nested_absmax", ".nested_quant_map", ".SCB", ".rows", ".cols", ".vals", ".full_rows", ".full_row_indices", ".startrows",
    ".weight_format", ".rotary_emb.inv_freq", ".position_ids",
)  # fmt: skip
_GGUF_TABLES: Final = frozenset({"rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight"})
_PACKED: Final = (".qweight", ".weight_packed")
_STORAGE_BITS: Final = {"I32": 32, "U32": 32, "U8": 8, "I8": 8}


def count_parameters(tensors: Mapping[str, TensorInfo], quantization: Mapping[str, Any] | None) -> int:
    """Sum over the tensors; a packed tensor counts storage bits / bits per weight for each stored element."""
    bits = _bits_per_weight(quantization)
    total = 0
    for name, tensor in tensors.items():
        if name in _GGUF_TABLES or name.endswith(_BOOKKEEPING) or ".quant_state." in name:
            continue
        elements = tensor.elements
        if name.endswith(_PACKED) and tensor.dtype in _STORAGE_BITS:
            elements = elements * _STORAGE_BITS[tensor.dtype] // bits
        elif tensor.dtype == "U8" and (f"{name}.absmax" in tensors or f"{name}_scale" in tensors):  # two weights in a byte
            elements *= 2
        total += elements
    return total


def _bits_per_weight(quantization: Mapping[str, Any] | None) -> int:
    """`bits` (GPTQ, AWQ), `w_bit`, `wbits`, or num_bits of the first compressed-tensors group; 4 when nothing says."""
    for field in ("bits", "w_bit", "wbits"):
        value = (quantization or {}).get(field)
        if type(value) is int and 1 <= value <= 16:
            return value
    groups = (quantization or {}).get("config_groups")
    for group in groups.values() if isinstance(groups, dict) else ():
        weights = group.get("weights") if isinstance(group, dict) else None
        value = weights.get("num_bits") if isinstance(weights, dict) else None
        if type(value) is int and 1 <= value <= 16:
            return value
    return 4
