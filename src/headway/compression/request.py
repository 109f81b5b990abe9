"""What `headway quantize` was asked to do."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import torch

from headway.compression.gptq import GptqSettings
from headway.compression.method import Method


@dataclass(frozen=True, slots=True)
class QuantizeRequest:
    """`calibration` None = the texts that come with Headway. `dtype` of tensors that stay dense, None = that of the source. `group` None =
    the largest that fits."""

    method: Method
    output: Path
    calibration: Path | None = None
    samples: int = 128
    length: int = 256
    group: int | None = None
    dtype: torch.dtype | None = None
    gptq: GptqSettings = field(default_factory=GptqSettings)
