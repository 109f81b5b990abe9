"""nvfp4 and mxfp4: two 4-bit floats in a byte (e2m1; the low half is the even input) beside scales of small groups of inputs.

nvfp4: groups of 16 with a float8 e4m3 scale, and one float32 scale for the whole matrix, which multiplies or divides, depending on who
wrote the file. mxfp4: groups of 32 with a scale uint8 n, which means 2^(n - 127). The packed bytes are uint8 [out, in/2].
"""

from __future__ import annotations

import torch

from headway.quantization.checkpoint_format import Stored
from headway.quantization.e2m1 import e2m1
from headway.quantization.packed_weight import WHOLE, Axis, PackedLayout, Part, Parts, bad_values, finite

_SCALES = "weight_scale"


def nvfp4(stored: Stored, *, packed: str, overall: str, divides: bool) -> tuple[PackedLayout, tuple[int, int]]:
    """`packed` and `overall` are the endings of the bytes and of the scale of the whole matrix."""
    title = "nvfp4, groups of 16"
    dims = len(stored[overall].shape) if overall in stored else 1

    def scales(found: Parts) -> torch.Tensor:
        whole = finite(title, found[overall]).reshape(())
        if not divides:
            return finite(title, found[_SCALES]) * whole
        if float(whole) == 0.0:
            raise bad_values(title, "the global scale is 0")
        return finite(title, found[_SCALES]) / whole

    parts = {
        packed: Part(("U8",), (Axis("out"), Axis("in", 2))),
        _SCALES: Part(("F8_E4M3",), (Axis("out"), Axis("in", 16))),
        overall: Part(("F32",), (WHOLE,) * dims),
    }
    layout = PackedLayout(title, parts, lambda found, rows: _unpacked(found[packed], scales(found)), needs="nvfp4")
    return layout, _shape(stored, packed)


def mxfp4(stored: Stored, *, packed: str) -> tuple[PackedLayout, tuple[int, int]]:
    """`packed` is the ending of the bytes."""
    title = "mxfp4, groups of 32"

    def scales(found: Parts) -> torch.Tensor:
        exponents = found[_SCALES].view(torch.uint8)
        if bool((exponents == 255).any()):
            raise bad_values(title, "scales are not numbers")
        return torch.exp2(exponents.float() - 127.0)

    parts = {
        packed: Part(("U8",), (Axis("out"), Axis("in", 2))),
        _SCALES: Part(("U8", "F8_E8M0"), (Axis("out"), Axis("in", 32))),
    }
    return PackedLayout(title, parts, lambda found, rows: _unpacked(found[packed], scales(found))), _shape(stored, packed)


def _shape(stored: Stored, packed: str) -> tuple[int, int]:
    shape = stored[packed].shape if packed in stored else ()
    return (shape[0], shape[1] * 2) if len(shape) == 2 else (0, 0)


def _unpacked(packed: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    halves = torch.stack((packed & 15, packed >> 4), -1).flatten(1)
    out = e2m1(halves)
    return (out.view(*scales.shape, -1) * scales[..., None]).flatten(1)
