"""AWQ, the layout called GEMM: 4 bits, eight output columns in a word in an order of its own.

`qweight` int32 [in, out/8], `qzeros` int32 [in/group, out/8], `scales` float16 [in/group, out]; w = (q - z) s. Bits 4i to 4i+3 of a
word hold column (0, 2, 4, 6, 1, 3, 5, 7)[i] of its eight. Source: WQLinear_GEMM of AutoAWQ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch

from headway.quantization.bit_fields import unpack_words
from headway.quantization.checkpoint_format import Stored
from headway.quantization.claim_fields import Claim, flag, group_size, integer, not_read, word
from headway.quantization.grouped_affine import GroupedAffine, affine_layout
from headway.quantization.packed_weight import FLOATS, WHOLE, Axis, PackedLayout, Part, Parts, finite

_WORDS: Final = Axis("out", 8)


@dataclass(frozen=True, slots=True)
class Awq:
    """`group` inputs share a scale; -1 = all."""

    group: int
    endings: frozenset[str] = frozenset({"qweight", "qzeros", "scales"})
    unused: frozenset[str] = frozenset()

    def layout_of(self, module: str, stored: Stored) -> tuple[PackedLayout, tuple[int, int]] | None:
        first = stored.get("qweight") or next(iter(stored.values()))
        width = first.shape[0] if first.shape else 0
        shape = (first.shape[1] * 8 if len(first.shape) == 2 else 0, width)
        group = width if self.group == -1 else self.group
        groups = WHOLE if self.group == -1 else Axis("in", group)
        title = f"AWQ int4, {'one group' if self.group == -1 else f'groups of {group}'}"
        parts = {
            "qweight": Part(("I32",), (Axis("in"), _WORDS)),
            "qzeros": Part(("I32",), (groups, _WORDS)),
            "scales": Part(FLOATS, (groups, Axis("out"))),
        }

        def read(found: Parts, rows: range) -> GroupedAffine:
            q, zeros = (_outputs(found[name])[: len(rows)] for name in ("qweight", "qzeros"))
            return GroupedAffine(q, finite(title, found["scales"]).t(), zeros.float(), group)

        return affine_layout(title, parts, read, bits=4, width=width, group=group, symmetric=False), shape


def awq(claim: Claim) -> Awq:
    """Raises ArtifactError (`invalid_quantization`), NotBuiltError (`quantization_not_built`)."""
    readable = "AWQ of 4 bits with zero points in the GEMM layout"
    bits, version = integer(claim, ("bits", "w_bit"), 4), word(claim, "version", "gemm")
    if bits != 4 or version != "gemm" or not flag(claim, "zero_point", True):
        zero = "" if flag(claim, "zero_point", True) else " without zero points"
        raise not_read(claim, f"AWQ of {bits} bits in the layout {version!r:.40}{zero}", readable)
    return Awq(group_size(claim, ("group_size", "q_group_size"), 128))


def _outputs(words: torch.Tensor) -> torch.Tensor:
    """int32 [k, out/8] -> uint8 [out, k]. Column 2a + b of a word is its number 4b + a."""
    numbers = unpack_words(words, 4, words.shape[-1] * 8).view(len(words), -1, 2, 4)
    return numbers.permute(1, 3, 2, 0).reshape(-1, len(words))
