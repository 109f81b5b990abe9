"""`python -m tests.quantization.record_bitsandbytes`: small weights as bitsandbytes stores them, and as it reads them back on a CPU.

It needs the package bitsandbytes, which the tests do not; recorded with 0.50.2. Rows are as wide as its blocks, since its CPU kernels of
that version read other rows wrongly.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

FILE = Path(__file__).with_name("recorded") / "bitsandbytes.safetensors"
OUT, WIDTH = 32, 64


def main() -> None:
    import bitsandbytes
    from bitsandbytes import functional

    generator = torch.Generator().manual_seed(4)
    recorded: dict[str, torch.Tensor] = {}

    def keep(name: str, module: torch.nn.Module, read: torch.Tensor) -> None:
        recorded.update({f"{name}.{ending}": tensor.contiguous() for ending, tensor in module.state_dict().items()})
        recorded[f"read.{name}"] = read.float().contiguous()

    for kind, nested in (("nf4", False), ("fp4", True)):
        made: Any = bitsandbytes.nn.Linear4bit(WIDTH, OUT, bias=False, quant_type=kind, compress_statistics=nested)
        dense = torch.randn(OUT, WIDTH, generator=generator) * 0.1
        made.weight = bitsandbytes.nn.Params4bit(dense, requires_grad=False, quant_type=kind, compress_statistics=nested)
        made.to("cpu")
        keep(kind, made, functional.dequantize_4bit(made.weight.data, made.weight.quant_state))
    eight: Any = bitsandbytes.nn.Linear8bitLt(WIDTH, OUT, bias=False, has_fp16_weights=False)
    dense = torch.randn(OUT, WIDTH, generator=generator) * 0.1
    eight.weight = bitsandbytes.nn.Int8Params(dense, requires_grad=False, has_fp16_weights=False)
    eight(torch.randn(2, WIDTH, generator=generator))  # which quantizes
    state = eight.state_dict()
    keep("int8", eight, functional.int8_vectorwise_dequant(state["weight"], state["SCB"]))
    save_file(recorded, FILE)


if __name__ == "__main__":
    main()
