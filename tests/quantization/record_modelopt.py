"""`python -m tests.quantization.record_modelopt`: small weights as NVIDIA ModelOpt packs them, and as it reads them back on a CPU.

It needs the package nvidia-modelopt, which the tests do not; recorded with 0.47.0.
"""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import save_file

FILE = Path(__file__).with_name("recorded") / "modelopt.safetensors"
OUT, WIDTH = 32, 64


def main() -> None:
    from modelopt.torch.quantization.qtensor import FP8QTensor, NVFP4QTensor

    dense = torch.randn(OUT, WIDTH, generator=torch.Generator().manual_seed(4)) * 0.1
    four, scale, overall = NVFP4QTensor.quantize(dense, 16)
    recorded = {
        "nvfp4.weight": four._quantized_data, "nvfp4.weight_scale": scale, "nvfp4.weight_scale_2": overall.float().reshape(()),
        "read.nvfp4": four.dequantize(dtype=torch.float32, scale=scale, double_scale=overall, block_sizes={-1: 16}),
    }  # fmt: skip
    for name, axis in (("fp8", None), ("fp8_rows", 0)):
        eight, scale = FP8QTensor.quantize(dense, axis=axis)
        recorded |= {
            f"{name}.weight": eight._quantized_data, f"{name}.weight_scale": scale.float().reshape(() if axis is None else (OUT,)),
            f"read.{name}": eight.dequantize(dtype=torch.float32, scale=scale),
        }  # fmt: skip
    save_file({name: tensor.contiguous() for name, tensor in recorded.items()}, FILE)


if __name__ == "__main__":
    main()
