"""Copies of packages with packed matrices, and beside each the same package with the matrices unpacked."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from tests.models.encoders.packed_encoders import is_matrix
from tests.quantization.packers import BY_NAME, Case, awq, gptq, numbers, pack_quantized, packed_tensors

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
    case, changed = FORMS[form], False
    for seed, name in enumerate(weights):
        plain = load_file(folder / name)
        stored, meant = packed_tensors(plain, case, which, seed=seed)
        changed |= stored.keys() != plain.keys() or any(stored[each].dtype != plain[each].dtype for each in plain)
        save_file(stored, packed / name)
        save_file(meant, twin / name, {"format": "pt"})
    assert changed, "nothing is packed"
    settings = json.loads((packed / config).read_text())
    (packed / config).write_text(json.dumps(settings | {"quantization_config": case.claim}))
    finish(packed)
    finish(twin)
    return packed, twin
