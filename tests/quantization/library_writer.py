"""A checkpoint written by the library compressed-tensors: rounded to nearest, packing and configuration are its own."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import torch
from compressed_tensors.compressors import BaseCompressor
from compressed_tensors.quantization import QuantizationArgs, QuantizationConfig, QuantizationScheme
from compressed_tensors.quantization.utils import calculate_qparams
from safetensors.torch import load_file, save_file

# form -> format and arguments, in words of the library
METHODS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "int4": ("pack-quantized", {"num_bits": 4, "strategy": "group", "group_size": 32, "symmetric": False}),
    "int8": ("int-quantized", {"num_bits": 8, "strategy": "channel", "symmetric": True}),
    "fp8": ("float-quantized", {"num_bits": 8, "type": "float", "strategy": "channel"}),
}


def written_by_the_library(source: Path, folder: Path, method: str, which: Callable[[str, torch.Tensor], bool]) -> Path:
    """A copy of `source` with the matrices that `which` chooses in the format `method`. Beside it, in `<folder>-read`, the same with the
    matrices as the library reads them back."""
    form, settings = METHODS[method]
    args = QuantizationArgs(**settings)
    scheme = QuantizationScheme(targets=["Linear"], weights=args)
    library = BaseCompressor.get_value_from_registry(form)
    shutil.copytree(source, folder)
    stored: dict[str, torch.Tensor] = {}
    read: dict[str, torch.Tensor] = {}
    ignored = []
    for name, tensor in load_file(source / "model.safetensors").items():
        module = name.removesuffix(".weight")
        if not which(name, tensor):
            stored[name] = read[name] = tensor
            ignored += [module] if tensor.dim() == 2 else []
            continue
        weight = tensor.float()
        groups = weight.view(len(weight), -1, settings.get("group_size", weight.shape[1]))
        scale, zero = calculate_qparams(groups.amin(-1), groups.amax(-1), args)
        parts = library.compress({"weight": weight, "weight_scale": scale, "weight_zero_point": zero}, scheme)
        read[name] = library.decompress(dict(parts), scheme)["weight"].float()
        stored |= {f"{module}.{ending}": part.contiguous() for ending, part in parts.items()}
    section = QuantizationConfig(config_groups={"group_0": scheme}, format=form, ignore=ignored, quantization_status="compressed")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").unlink()  # of a cache, perhaps a link
    (folder / "config.json").write_text(json.dumps(config | {"quantization_config": section.model_dump(mode="json")}))
    (folder / "model.safetensors").unlink()
    save_file(stored, folder / "model.safetensors", {"format": "pt"})
    twin = Path(shutil.copytree(source, folder.with_name(f"{folder.name}-read")))
    (twin / "model.safetensors").unlink()
    save_file(read, twin / "model.safetensors", {"format": "pt"})
    return folder
