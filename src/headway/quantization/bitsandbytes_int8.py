"""bitsandbytes of 8 bits (LLM.int8): one number for each weight, and the largest of each output beside them.

`weight` int8 [out, in], `SCB` float32 [out]; w = q SCB / 127. `weight_format` uint8 [] is 0 for rows of outputs; other numbers are orders
that GPU kernels of old versions had.
"""

from __future__ import annotations

from typing import Final

from headway.kernels.integer_weight import IntegerForm, IntegerWeight
from headway.quantization.checkpoint_format import Stored
from headway.quantization.packed_weight import Axis, Integers, PackedLayout, Part, Parts, bad_values, finite

SCALES: Final = "SCB"
ORDER: Final = "weight_format"


def row_scaled(stored: Stored) -> tuple[PackedLayout, tuple[int, int]]:
    """Of a weight whose numbers are int8 or that has SCALES."""
    title = "bitsandbytes int8, a scale for each output"
    shape = stored["weight"].shape if "weight" in stored else ()
    parts = {"weight": Part(("I8",), (Axis("out"), Axis("in"))), SCALES: Part(("F32",), (Axis("out"),))}
    if ORDER in stored:
        parts[ORDER] = Part(("U8",), ())

    form = IntegerForm(8, shape[1] if len(shape) == 2 else 1)

    def read(found: Parts, rows: range) -> IntegerWeight:
        if ORDER in found and int(found[ORDER]) != 0:
            raise bad_values(title, f"weight_format is {int(found[ORDER])}, and only 0 (rows of outputs) is read",
                             "Save the model again with a newer bitsandbytes.")  # fmt: skip
        return IntegerWeight(form.within(found["weight"].shape[1]), found["weight"].clone(), (finite(title, found[SCALES]) / 127.0)[:, None])

    layout = PackedLayout(title, parts, lambda found, rows: read(found, rows).dequantized(), integers=Integers(form, read))
    return layout, (shape[0], shape[1]) if len(shape) == 2 else (0, 0)
