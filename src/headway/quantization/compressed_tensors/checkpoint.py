"""A compressed-tensors checkpoint: which packing a module has. What is quantized at all the tensors say; `ignore` only repeats it.

int-quantized, float-quantized and naive-quantized store a number for each weight (`weight`, `weight_scale`, `weight_zero_point`).
Scales of activations and of the KV cache are not needed to compute in 16 or 32 bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from headway.quantization.checkpoint_format import Stored
from headway.quantization.claim_fields import Claim, invalid, not_read, section, word
from headway.quantization.compressed_tensors.pack_quantized import pack_quantized
from headway.quantization.compressed_tensors.scheme import Scheme, scheme_of, schemes
from headway.quantization.four_bit_floats import mxfp4, nvfp4
from headway.quantization.packed_weight import PackedLayout
from headway.quantization.scaled_numbers import scaled_layout

_READABLE: Final = "compressed-tensors that are pack-, int-, float- or naive-quantized, nvfp4-pack-quantized or mxfp4-pack-quantized"
_WEIGHT: Final = frozenset({"weight", "weight_packed", "weight_scale", "weight_shape", "weight_zero_point", "weight_g_idx", "weight_global_scale"})


@dataclass(frozen=True, slots=True)
class CompressedTensors:
    claim: Claim
    schemes: tuple[Scheme, ...]
    endings: frozenset[str] = _WEIGHT
    unused: frozenset[str] = frozenset(
        {"input_scale", "input_zero_point", "input_global_scale", "output_scale", "output_zero_point", "output_global_scale"}
    )

    def layout_of(self, module: str, stored: Stored) -> tuple[PackedLayout, tuple[int, int]] | None:
        plain = stored.get("weight")
        if stored.keys() == {"weight"} and plain is not None and plain.dtype not in ("I8", "F8_E4M3"):
            return None
        scheme = scheme_of(module, self.schemes)
        if scheme is None:
            raise invalid(self.claim, f"no group of config_groups has {module} among its targets, and it is quantized")
        if "weight_packed" in stored:
            return self._packed(module, stored, scheme)
        if "weight" not in stored:
            raise invalid(self.claim, f"{module} has {', '.join(sorted(stored))} and no weight")
        kinds = {"int": ("I8",), "float": ("F8_E4M3",)}.get(scheme.kind)
        if kinds is None or scheme.bits != 8 or not scheme.packing.endswith("-quantized"):
            raise not_read(self.claim, f"{scheme.kind}{scheme.bits} in the format {scheme.packing!r:.40}", _READABLE)
        zero = None if scheme.symmetric else "weight_zero_point"
        return scaled_layout(f"compressed-tensors {scheme.kind}8", stored, scheme.blocks, kinds, scale="weight_scale", zero=zero)

    def _packed(self, module: str, stored: Stored, scheme: Scheme) -> tuple[PackedLayout, tuple[int, int]]:
        if scheme.packing == "nvfp4-pack-quantized":
            return nvfp4(stored, packed="weight_packed", overall="weight_global_scale", divides=True)
        if scheme.packing == "mxfp4-pack-quantized":
            return mxfp4(stored, packed="weight_packed")
        if scheme.packing == "pack-quantized" and scheme.kind == "int" and 2 <= scheme.bits <= 8 and scheme.blocks.rows in (None, 1):
            return pack_quantized(module, stored, scheme)
        raise not_read(self.claim, f"{scheme.kind}{scheme.bits} in the format {scheme.packing!r:.40}", _READABLE)


def compressed_tensors(claim: Claim) -> CompressedTensors:
    """Raises ArtifactError (`invalid_quantization`), NotBuiltError (`quantization_not_built`)."""
    sparsity = word(section(claim, "sparsity_config"), "format", "dense")
    if sparsity != "dense":
        raise not_read(claim, f"compressed-tensors with sparse weights ({sparsity!r:.40})", _READABLE)
    if section(section(claim, "transform_config"), "config_groups"):
        raise not_read(claim, "compressed-tensors whose inputs are rotated while they are computed (transform_config)", _READABLE)
    return CompressedTensors(claim, schemes(claim))
