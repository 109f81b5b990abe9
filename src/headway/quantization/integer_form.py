"""Which stored matrices are integers with scales, known from the card."""

from __future__ import annotations

from headway.artifacts.card import TensorInfo
from headway.kernels.integer_weight import IntegerForm
from headway.quantization.gguf.unpackers import INTEGER_BLOCKS
from headway.quantization.packed_weight import PackedTensor


def integer_form(info: TensorInfo) -> IntegerForm | None:
    """How `WeightReader.integers` reads a tensor of a logical card; None for floats, and for what is no matrix."""
    if len(info.shape) != 2:
        return None
    if isinstance(info, PackedTensor):
        integers = info.layout.integers
        return None if integers is None or info.layout.whole else integers.form
    blocks = INTEGER_BLOCKS.get(info.dtype)
    return None if blocks is None or info.shape[1] % blocks.form.group else blocks.form
