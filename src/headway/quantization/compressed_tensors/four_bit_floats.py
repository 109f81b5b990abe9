"""nvfp4 and mxfp4: two 4-bit floats in a byte (e2m1; the low half is the even input) beside scales of small groups of inputs.

`weight_packed` uint8 [out, in/2]. nvfp4: `weight_scale` float8 e4m3 [out, in/16] and `weight_global_scale` float32 [1], by which is
divided. mxfp4: `weight_scale` uint8 [out, in/32], which means 2^(n - 127).
"""

from __future__ import annotations

import torch

from headway.quantization.checkpoint_format import Stored
from headway.quantization.e2m1 import e2m1
from headway.quantization.packed_weight import WHOLE, Axis, PackedLayout, Part, Parts, bad_values, finite


def nvfp4(stored: Stored) -> tuple[PackedLayout, tuple[int, int]]:
    title = "nvfp4, groups of 16"
    dims = len(stored["weight_global_scale"].shape) if "weight_global_scale" in stored else 1

    def scales(found: Parts) -> torch.Tensor:
        overall = finite(title, found["weight_global_scale"]).reshape(())
        if float(overall) == 0.0:
            raise bad_values(title, "the global scale is 0")
        return finite(title, found["weight_scale"]) / overall

    parts = {
        "weight_packed": Part(("U8",), (Axis("out"), Axis("in", 2))),
        "weight_scale": Part(("F8_E4M3",), (Axis("out"), Axis("in", 16))),
        "weight_global_scale": Part(("F32",), (WHOLE,) * dims),
    }
    return PackedLayout(title, parts, lambda found, rows: _unpacked(found, scales(found))), _shape(stored)


def mxfp4(stored: Stored) -> tuple[PackedLayout, tuple[int, int]]:
    title = "mxfp4, groups of 32"

    def scales(found: Parts) -> torch.Tensor:
        exponents = found["weight_scale"].view(torch.uint8)
        if bool((exponents == 255).any()):
            raise bad_values(title, "scales are not numbers")
        return torch.exp2(exponents.float() - 127.0)

    parts = {
        "weight_packed": Part(("U8",), (Axis("out"), Axis("in", 2))),
        "weight_scale": Part(("U8", "F8_E8M0"), (Axis("out"), Axis("in", 32))),
    }
    return PackedLayout(title, parts, lambda found, rows: _unpacked(found, scales(found))), _shape(stored)


def _shape(stored: Stored) -> tuple[int, int]:
    packed = stored["weight_packed"].shape
    return (packed[0], packed[1] * 2) if len(packed) == 2 else (0, 0)


def _unpacked(found: Parts, scales: torch.Tensor) -> torch.Tensor:
    packed = found["weight_packed"]
    halves = torch.stack((packed & 15, packed >> 4), -1).flatten(1)
    out = e2m1(halves)
    return (out.view(*scales.shape, -1) * scales[..., None]).flatten(1)
