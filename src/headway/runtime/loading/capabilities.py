"""What a model may need of a device beside memory, and the sentence for a device that does not have it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

SENTENCES: Final[Mapping[str, str]] = {
    "lapack": "PyTorch was built without LAPACK, which this model needs on the CPU; install a build that has it, or use a GPU",
    "fp8": (
        "FP8 weights need an NVIDIA GPU of compute capability 8.9 or later or an AMD Instinct MI300 or MI350 series GPU;"
        " use a BF16 or int4 package elsewhere"
    ),
    "nvfp4": "NVFP4 packages need FP4 tensor cores; serve NVFP4 packages on a Blackwell GPU",
    "fp4_tensors": (
        "NVFP4 packages need FP4 tensor cores; serve NVFP4 packages on a Blackwell GPU with a PyTorch that has FP4 tensors"
    ),
    "triton": (
        "NVFP4 packages need FP4 tensor cores; serve NVFP4 packages on a Blackwell GPU with Triton installed, which is missing"
    ),
}


def sentence(capability: str) -> str:
    """Why a device without `capability` cannot run the model."""
    return SENTENCES.get(capability, f"the device does not offer {capability}, which this model needs")
