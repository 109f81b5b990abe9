"""AMD Quark: weights in FP8 (e4m3), symmetric int8 or MXFP4, all modules of a checkpoint alike.

`weight` float8 e4m3 or int8 [out, in] with `weight_scale` float32, one or one for each output; for MXFP4 `weight` uint8 [out, in/2] with
`weight_scale` uint8 [out, in/32]. `global_quant_config` says which. Scales of activations are not needed to compute in 16 or 32 bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from headway.quantization.checkpoint_format import Stored
from headway.quantization.claim_fields import Claim, flag, integer, not_read, section, word
from headway.quantization.four_bit_floats import mxfp4
from headway.quantization.packed_weight import PackedLayout
from headway.quantization.scaled_numbers import Blocks, scaled_layout

_READABLE: Final = "Quark with one global_quant_config: fp8_e4m3 or symmetric int8 (per_tensor, per_channel), or fp4 (per_group of 32, e8m0)"
_NUMBERS: Final = {"fp8_e4m3": ("Quark fp8", "F8_E4M3"), "int8": ("Quark int8", "I8")}
_BLOCKS: Final = {"per_tensor": Blocks(None, None), "per_channel": Blocks(1, None)}
_FP4: Final = "fp4"
_PACKED_DTYPES: Final = ("U8", "I8", "F8_E4M3")


@dataclass(frozen=True, slots=True)
class Quark:
    """`dtype` and `scheme` in words of Quark."""

    dtype: str
    scheme: str
    endings: frozenset[str] = frozenset({"weight", "weight_scale"})
    # Zero points of symmetric weights are zeros.
    unused: frozenset[str] = frozenset({"weight_zero_point", "input_scale", "input_zero_point", "output_scale", "output_zero_point", "bias_scale"})

    def layout_of(self, module: str, stored: Stored) -> tuple[PackedLayout, tuple[int, int]] | None:
        weight = stored.get("weight")
        if weight is None or (stored.keys() == {"weight"} and weight.dtype not in _PACKED_DTYPES):
            return None
        if self.dtype == _FP4:
            return mxfp4(stored, packed="weight")
        title, dtype = _NUMBERS[self.dtype]
        return scaled_layout(title, stored, _BLOCKS[self.scheme], (dtype,), scale="weight_scale")


def quark(claim: Claim) -> Quark:
    """Raises ArtifactError (`invalid_quantization`), NotBuiltError (`quantization_not_built`)."""
    if claim.get("layer_quant_config") or claim.get("layer_type_quant_config"):
        raise not_read(claim, "Quark with settings of their own for some modules (layer_quant_config)", _READABLE)
    weight = section(section(claim, "global_quant_config"), "weight")
    dtype, scheme = word(weight, "dtype", ""), word(weight, "qscheme", "")
    if dtype == _FP4:
        readable = scheme == "per_group" and integer(weight, ("group_size",), 32) == 32 and word(weight, "scale_format", "e8m0") == "e8m0"
    else:
        readable = dtype in _NUMBERS and scheme in _BLOCKS and (dtype != "int8" or flag(weight, "symmetric", False))
    if not readable:
        raise not_read(claim, f"Quark weights of {dtype!r:.40}, {scheme!r:.40}, symmetric {weight.get('symmetric')!r:.20}", _READABLE)
    return Quark(dtype, scheme)
