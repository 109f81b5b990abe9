"""pack-quantized: integers of 2 to 8 bits in a stream without gaps along the inputs of each output.

`weight_packed` int32 [out, in bits/32] holds q + 2^(bits-1), `weight_scale` [out, groups], `weight_shape` int64 [2]; with zero points
`weight_zero_point` int32 [out bits/32, groups], packed along the outputs in the same way; with inputs in an order of their own
`weight_g_idx` int32 [in], the group of each. w = (q - z) s.
"""

from __future__ import annotations

import torch

from headway.errors import ArtifactError
from headway.quantization.bit_fields import unpack_words
from headway.quantization.checkpoint_format import Stored
from headway.quantization.compressed_tensors.scheme import Scheme
from headway.quantization.grouped_affine import GroupedAffine, affine_layout
from headway.quantization.packed_weight import FLOATS, Axis, PackedLayout, Part, Parts, bad_values, finite
from headway.quantization.scaled_numbers import scale_axes
from headway.quantization.small_tensor import small_integers


def pack_quantized(module: str, stored: Stored, scheme: Scheme) -> tuple[PackedLayout, tuple[int, int]]:
    """Raises ArtifactError (`packed_part_missing`, `packed_shape`)."""
    shape = _shape(module, stored)
    bits, blocks, width = scheme.bits, scheme.blocks, shape[1]
    indexed = "weight_g_idx" in stored
    group = blocks.columns or max(width, 1)
    count = -(-width // group)
    axes = scale_axes(stored.get("weight_scale"), blocks)
    columns = (Axis("whole", entries=count),) if indexed or blocks.columns is None else (Axis("in", group),)
    if indexed and blocks.columns is not None:
        axes = (axes[0], *columns)  # inputs in any order need the scales of all groups on every rank
    title = f"compressed-tensors int{bits}, {blocks}{'' if scheme.symmetric else ', zero points'}{', reordered' if indexed else ''}"
    parts = {"weight_packed": Part(("I32",), (Axis("out"), Axis("in", 32, bits))), "weight_scale": Part(FLOATS, axes)}
    if not scheme.symmetric:
        parts["weight_zero_point"] = Part(("I32",), (Axis("out", 32, bits), *columns))
    if indexed:
        parts["weight_g_idx"] = Part(("I32", "I64"), (Axis("in"),))

    def read(found: Parts, rows: range) -> GroupedAffine:
        packed = found["weight_packed"]
        index = found.get("weight_g_idx")
        q = unpack_words(packed, bits, min(width, packed.shape[1] * 32 // bits))
        scales = finite(title, found["weight_scale"]).reshape(len(rows), -1) if blocks.rows else finite(title, found["weight_scale"]).reshape(1, 1)
        zeros: torch.Tensor | int = 1 << (bits - 1)
        if not scheme.symmetric:
            zeros = unpack_words(found["weight_zero_point"].t(), bits, len(rows)).t().float()
        if index is not None and (int(index.min()) < 0 or int(index.max()) >= count):
            raise bad_values(title, f"weight_g_idx names group {int(index.max())}, the weight has {count}")
        return GroupedAffine(q, scales.expand(len(rows), -1), zeros, group if index is None else index.long())

    return affine_layout(
        title, parts, read, bits=bits, width=width, group=None if indexed else group, symmetric=scheme.symmetric
    ), shape


def _shape(module: str, stored: Stored) -> tuple[int, int]:
    """The width follows from the packed tensor only up to the rest of a word."""
    info = stored.get("weight_shape")
    if info is None:
        raise ArtifactError(
            f"{module} is pack-quantized, and the checkpoint has no {module}.weight_shape", reason="packed_part_missing",
            param=f"{module}.weight_shape", fix="Download the file again.",
        )  # fmt: skip
    found = small_integers(info)
    return (found[0], found[1]) if len(found) == 2 else (0, 0)
