"""bitsandbytes; of 4 bits (nf4, fp4): indices into a table of 16 numbers, scaled in blocks of neighbouring weights.

`weight` uint8 [out in/2, 1], the high half of a byte first; `weight.quant_map` float32 [16]; `weight.absmax` float32 [blocks]; the block
size and the shape are JSON in `weight.quant_state.bitsandbytes__nf4`. Doubly quantized, `weight.absmax` is uint8: indices into
`weight.nested_quant_map` [256], times `weight.nested_absmax` of blocks of 256, plus an offset. Source: QuantState of bitsandbytes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import torch

from headway.errors import ArtifactError
from headway.quantization.bitsandbytes_int8 import ORDER, SCALES, row_scaled
from headway.quantization.checkpoint_format import Stored
from headway.quantization.claim_fields import Claim
from headway.quantization.packed_weight import WHOLE, Axis, PackedLayout, Part, Parts, finite
from headway.quantization.small_tensor import small_object

_STATES: Final = ("weight.quant_state.bitsandbytes__nf4", "weight.quant_state.bitsandbytes__fp4")


@dataclass(frozen=True, slots=True)
class BitsAndBytes:
    endings: frozenset[str] = frozenset(
        {"weight", "weight.absmax", "weight.quant_map", "weight.nested_absmax", "weight.nested_quant_map", *_STATES, SCALES, ORDER}
    )
    unused: frozenset[str] = frozenset()

    def layout_of(self, module: str, stored: Stored) -> tuple[PackedLayout, tuple[int, int]] | None:
        weight = stored.get("weight")
        if SCALES in stored or (weight is not None and weight.dtype == "I8"):
            return row_scaled(stored)
        if stored.keys() <= {"weight"}:
            return None
        name = next((name for name in _STATES if name in stored), None)
        if name is None:
            raise ArtifactError(
                f"{module} is quantized by bitsandbytes, and the checkpoint has no {module}.{_STATES[0]}", reason="packed_part_missing",
                param=f"{module}.{_STATES[0]}", fix="Download the file again, or save the model with a newer bitsandbytes.",
            )  # fmt: skip
        return _layout(name.rpartition("__")[2], small_object(stored[name]), module)


def bitsandbytes(claim: Claim) -> BitsAndBytes:
    """The tensors of a module say whether it has 4 or 8 bits."""
    return BitsAndBytes()


def _layout(kind: str, state: Mapping[str, Any], module: str) -> tuple[PackedLayout, tuple[int, int]]:
    shape = state.get("shape")
    if not isinstance(shape, list) or len(shape) != 2 or not all(type(size) is int and 0 < size < 1 << 28 for size in shape):
        raise _bad(module, f"shape must be two positive numbers, got {shape!r:.40}")
    rows, width = shape
    block, nested = _block(state, "blocksize", module), "nested_blocksize" in state
    outer = _block(state, "nested_blocksize", module) if nested else 1
    offset = state.get("nested_offset", 0.0)
    if not isinstance(offset, int | float) or not math.isfinite(offset):
        raise _bad(module, f"nested_offset must be a number, got {offset!r:.40}")
    blocks = math.ceil(rows * width / block)
    apart = width % 2 == 0  # rows begin at bytes
    title = f"bitsandbytes {kind}, blocks of {block}{f' in {outer}, offset {offset!r}' if nested else ''}"
    packed = Axis("out", 1, width // 2) if apart else Axis("whole", entries=math.ceil(rows * width / 2))
    parts = {
        "weight": Part(("U8",), (packed, WHOLE)),
        "weight.quant_map": Part(("F32",), (Axis("whole", entries=16),)),
        # Blocks need not end where rows do, so a part is no smaller matrix.
        "weight.absmax": Part(("U8" if nested else "F32",), (Axis("whole", entries=blocks),)),
    }
    if nested:
        parts["weight.nested_quant_map"] = Part(("F32",), (Axis("whole", entries=256),))
        parts["weight.nested_absmax"] = Part(("F32",), (Axis("whole", entries=math.ceil(blocks / outer)),))

    def dequantize(found: Parts, wanted: range) -> torch.Tensor:
        raw = found["weight"].reshape(-1)
        indices = torch.stack((raw >> 4, raw & 15), -1).flatten()[: len(wanted) * width]
        scales = _scales(title, found, outer, offset) if nested else finite(title, found["weight.absmax"])
        first, last = wanted.start * width, wanted.stop * width
        own = scales[first // block : math.ceil(last / block)].repeat_interleave(block)[first % block :][: last - first]
        return (finite(title, found["weight.quant_map"]).index_select(0, indices.int()) * own).view(len(wanted), width)

    return PackedLayout(title, parts, dequantize, whole=not apart, divisible=False), (rows, width)


def _scales(title: str, found: Parts, outer: int, offset: float) -> torch.Tensor:
    indices = found["weight.absmax"].int()
    spread = finite(title, found["weight.nested_absmax"]).repeat_interleave(outer)[: len(indices)]
    return finite(title, found["weight.nested_quant_map"])[indices] * spread + offset


def _block(state: Mapping[str, Any], name: str, module: str) -> int:
    size = state.get(name)
    if type(size) is not int or not 2 <= size <= 1 << 16:
        raise _bad(module, f"{name} must be a number from 2 to 65536, got {size!r:.40}")
    return size


def _bad(module: str, problem: str) -> ArtifactError:
    return ArtifactError(
        f"the settings that bitsandbytes stores beside {module} are not valid: {problem}", reason="packed_values", param=module,
        fix="Download the file again.",
    )  # fmt: skip
