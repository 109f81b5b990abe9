"""Copies of packages with packed matrices, and beside each the same package with the matrices unpacked."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from tests.models.encoders.packed_encoders import is_matrix
from tests.quantization.packers import BY_NAME, Case, awq, gptq, numbers, pack_quantized

# Groups and blocks that divide the matrices of the tiny packages.
FORMS = {
    "int4": Case("int4", BY_NAME["packed 4 bit act-order"].claim, pack_quantized(4, 16, reordered=True)),
    "awq": Case("awq", {**BY_NAME["awq"].claim, "group_size": 16}, awq(16)),
    "gptq": Case("gptq", {**BY_NAME["gptq 4 bit act-order"].claim, "group_size": 16}, gptq(4, 16, reordered=True)),
    "int8": BY_NAME["int8 by output"],
    "fp8": BY_NAME["float8 by output"],
    "fp8 blocks": Case("blocks", {"quant_method": "fp8", "weight_block_size": [16, 16]}, numbers(torch.float8_e4m3fn, (16, 16), "weight_scale_inv")),
    "modelopt fp8": BY_NAME["modelopt fp8"],
    "nvfp4": BY_NAME["nvfp4"],
    "modelopt nvfp4": BY_NAME["modelopt nvfp4"],
    "mxfp4": BY_NAME["mxfp4"],
}


def pair(
    folder: Path, into: Path, form: str, *, weights: Sequence[str] = ("model.safetensors",), config: str = "config.json",
    which: Callable[[str, torch.Tensor], bool] = is_matrix, finish: Callable[[Path], None] = lambda folder: None,
) -> tuple[Path, Path]:  # fmt: skip
    """The packed copy and its twin: random numbers in the matrices of the files `weights` that `which` chooses. The section goes into
    `config`; `finish` brings what lists files up to date."""
    packed, twin = into / "packed", into / "twin"
    shutil.copytree(folder, packed)
    shutil.copytree(folder, twin)
    rng, case, count = np.random.default_rng(5), FORMS[form], 0
    for name in weights:
        plain = load_file(folder / name)
        stored = dict(plain)
        for each in [each for each, tensor in plain.items() if which(each, tensor)]:
            parts, weight = case.pack(rng, *plain[each].shape)
            del stored[each]
            stored |= {f"{each.removesuffix('.weight')}.{ending}": tensor.contiguous() for ending, tensor in parts.items()}
            plain[each] = torch.from_numpy(np.ascontiguousarray(weight)).float()
            count += 1
        save_file(stored, packed / name)
        save_file(plain, twin / name, {"format": "pt"})
    assert count, "nothing is packed"
    settings = json.loads((packed / config).read_text())
    (packed / config).write_text(json.dumps(settings | {"quantization_config": case.claim}))
    finish(packed)
    finish(twin)
    return packed, twin
