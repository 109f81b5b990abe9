"""NVIDIA ModelOpt: FP8 and NVFP4, or one of them for each module.

FP8: `weight` float8 e4m3 [out, in] and `weight_scale` float32, one, one for each output, or one for each block of 128 x 128 (stored
[out/128, 1, in/128, 1]). NVFP4: `weight` uint8 [out, in/2], `weight_scale` float8 e4m3 [out, in/16], `weight_scale_2` float32 [], all of
which multiply. Scales of activations and of the KV cache are not needed to compute in 16 or 32 bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from headway.quantization.checkpoint_format import Stored
from headway.quantization.claim_fields import Claim, invalid, not_read, section, word
from headway.quantization.four_bit_floats import nvfp4
from headway.quantization.packed_weight import PackedLayout
from headway.quantization.scaled_numbers import Blocks, scaled_layout

_FP8: Final = frozenset({"fp8", "fp8_per_channel_per_token", "fp8_pb_wo"})
_NVFP4: Final = frozenset({"nvfp4", "nvfp4_awq"})
_MIXED: Final = "mixed_precision"
_READABLE: Final = f"ModelOpt with the quant_algo {', '.join(sorted(_FP8 | _NVFP4)).upper()}, and {_MIXED.upper()} of these"


@dataclass(frozen=True, slots=True)
class ModelOpt:
    """`algorithm` of all modules; those in `layers` have their own."""

    claim: Claim
    algorithm: str
    layers: Mapping[str, str]
    endings: frozenset[str] = frozenset({"weight", "weight_scale", "weight_scale_2"})
    unused: frozenset[str] = frozenset({"input_scale", "output_scale"})

    def layout_of(self, module: str, stored: Stored) -> tuple[PackedLayout, tuple[int, int]] | None:
        weight = stored.get("weight")
        if weight is None or (stored.keys() == {"weight"} and weight.dtype not in ("U8", "F8_E4M3")):
            return None
        algorithm = self.layers.get(module, self.algorithm)
        if algorithm in _NVFP4:
            return nvfp4(stored, packed="weight", overall="weight_scale_2", divides=False)
        if algorithm in _FP8:
            scales = stored.get("weight_scale")
            one = scales is None or scales.elements == 1
            blocks = Blocks(128, 128) if algorithm == "fp8_pb_wo" else Blocks(None, None) if one else Blocks(1, None)
            return scaled_layout("ModelOpt fp8", stored, blocks, ("F8_E4M3",), scale="weight_scale")
        raise invalid(self.claim, f"{module} is quantized, and quantized_layers does not say how")


def modelopt(claim: Claim) -> ModelOpt:
    """Raises ArtifactError (`invalid_quantization`), NotBuiltError (`quantization_not_built`)."""
    algorithm = word(claim, "quant_algo", "")
    layers = {}
    for name, settings in section(claim, "quantized_layers").items():
        if not isinstance(settings, Mapping):
            raise invalid(claim, f"quantized_layers {name!r:.60} must be an object, got {settings!r:.40}")
        layers[name] = word(settings, "quant_algo", algorithm)
    for each in (algorithm, *layers.values()):
        if each not in _FP8 | _NVFP4 | {_MIXED}:
            raise not_read(claim, f"ModelOpt {each.upper()!r:.40}", _READABLE)
    return ModelOpt(claim, algorithm, layers)
