"""SqueezeLLM: 3 or 4 bits that index a table of each output, and outliers beside them.

`qweight` int32 [in bits/32, out] packed along the inputs, `lookup_table` [out, 2^bits]; w = table[q]. Outliers are added: a sparse
matrix in CSR (`rows` int32 [out + 1], `cols` int32 [n], `vals` float32 [n]) and whole rows (`full_rows` [in, r] for the outputs
`full_row_indices` [r]). Source: QuantLinearLUT of SqueezeLLM.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch

from headway.quantization.bit_fields import unpack_words
from headway.quantization.checkpoint_format import Stored
from headway.quantization.claim_fields import Claim, integer, not_read
from headway.quantization.packed_weight import FLOATS, Axis, PackedLayout, Part, Parts, bad_values, finite

_SPARSE: Final = ("rows", "cols", "vals")
_FULL: Final = ("full_rows", "full_row_indices")


@dataclass(frozen=True, slots=True)
class SqueezeLlm:
    bits: int
    endings: frozenset[str] = frozenset({"qweight", "lookup_table", *_SPARSE, *_FULL})
    unused: frozenset[str] = frozenset({"startrows"})  # how threads of a GPU kernel share the outliers

    def layout_of(self, module: str, stored: Stored) -> tuple[PackedLayout, tuple[int, int]] | None:
        bits = self.bits
        first = stored.get("qweight") or next(iter(stored.values()))
        out, words = (first.shape[1], first.shape[0]) if len(first.shape) == 2 else (0, 0)
        sparse, full = any(name in stored for name in _SPARSE), any(name in stored for name in _FULL)
        title = f"SqueezeLLM int{bits}{', outliers' if sparse else ''}{', full rows' if full else ''}"
        parts = {
            "qweight": Part(("I32",), (Axis("in", 32, bits), Axis("out"))),
            "lookup_table": Part(FLOATS, (Axis("out"), Axis("whole", entries=1 << bits))),
        }
        # Which outliers belong to which outputs only the values say: so a part is no smaller matrix.
        if sparse:
            count = Axis("whole", entries=stored["cols" if "cols" in stored else "vals"].elements if stored.keys() & {"cols", "vals"} else 0)
            parts |= {"rows": Part(("I32",), (Axis("whole", entries=out + 1),)), "cols": Part(("I32",), (count,)), "vals": Part(FLOATS, (count,))}
        if full:
            count = Axis("whole", entries=stored["full_row_indices"].elements if "full_row_indices" in stored else 0)
            parts |= {"full_rows": Part(FLOATS, (Axis("in"), count)), "full_row_indices": Part(("I32",), (count,))}

        def dequantize(found: Parts, rows: range) -> torch.Tensor:
            packed = found["qweight"].t()
            q = unpack_words(packed, bits, packed.shape[-1] * 32 // bits)
            weight = torch.gather(finite(title, found["lookup_table"]), 1, q.long())
            if sparse:
                _add_sparse(title, weight, found, rows)
            if full:
                _add_rows(title, weight, found, rows)
            return weight

        return PackedLayout(title, parts, dequantize, divisible=not (sparse or full)), (out, words * 32 // bits)


def squeezellm(claim: Claim) -> SqueezeLlm:
    """Raises ArtifactError (`invalid_quantization`), NotBuiltError (`quantization_not_built`)."""
    bits = integer(claim, ("wbits", "bits", "w_bit"), 4)
    if bits not in (3, 4):
        raise not_read(claim, f"SqueezeLLM of {bits} bits", "SqueezeLLM of 3 and 4 bits")
    return SqueezeLlm(bits)


def _add_sparse(title: str, weight: torch.Tensor, found: Parts, rows: range) -> None:
    ends, columns = found["rows"].long(), found["cols"].long()
    count = len(columns)
    if int(ends[0]) != 0 or int(ends[-1]) != count or bool((ends.diff() < 0).any()):
        raise bad_values(title, f"rows of the outliers must rise from 0 to {count}")
    if count and (int(columns.min()) < 0 or int(columns.max()) >= weight.shape[1]):
        raise bad_values(title, f"an outlier lies in column {int(columns.max())} of {weight.shape[1]}")
    first, last = int(ends[rows.start]), int(ends[rows.stop])
    lines = torch.repeat_interleave(torch.arange(len(rows)), ends[rows.start : rows.stop + 1].diff())
    weight.index_put_((lines, columns[first:last]), finite(title, found["vals"])[first:last], accumulate=True)


def _add_rows(title: str, weight: torch.Tensor, found: Parts, rows: range) -> None:
    values = finite(title, found["full_rows"]).t()
    for index, line in zip(found["full_row_indices"].tolist(), values, strict=True):
        if index < 0:
            raise bad_values(title, f"a full row of outliers has the number {index}")
        if index in rows:
            weight[index - rows.start] += line
