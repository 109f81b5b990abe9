"""Stored types that are plain numbers: their names in safetensors and GGUF, and what torch calls them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import torch

DENSE_DTYPES: Final[Mapping[str, torch.dtype]] = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}

# What the parts of packed weights are stored as.
PART_DTYPES: Final[Mapping[str, torch.dtype]] = {
    **DENSE_DTYPES, "U8": torch.uint8, "I8": torch.int8, "I32": torch.int32, "I64": torch.int64, "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2, "F8_E8M0": torch.float8_e8m0fnu,
}  # fmt: skip
