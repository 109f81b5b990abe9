"""Stored types that are plain numbers: their names in safetensors and GGUF, and what torch calls them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import torch

DENSE_DTYPES: Final[Mapping[str, torch.dtype]] = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
