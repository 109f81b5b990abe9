"""What the compressed-tensors library writes, read as the library reads it: packing and configuration are both its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from compressed_tensors.compressors import BaseCompressor
from compressed_tensors.quantization import QuantizationArgs, QuantizationConfig, QuantizationScheme
from compressed_tensors.quantization.utils import calculate_qparams
from safetensors.torch import save_file

from headway.artifacts.safetensors_header import read_safetensors_header
from headway.quantization.weight_reader import WeightReader
from tests.quantization.test_weight_reader import card_of

OUT, WIDTH = 48, 96
FORMS = [
    ("pack-quantized", {"num_bits": 4, "strategy": "group", "group_size": 32, "symmetric": True}),
    ("pack-quantized", {"num_bits": 4, "strategy": "group", "group_size": 32, "symmetric": False}),
    ("pack-quantized", {"num_bits": 3, "strategy": "channel", "symmetric": True}),
    ("pack-quantized", {"num_bits": 8, "strategy": "channel", "symmetric": False}),
    ("int-quantized", {"num_bits": 8, "strategy": "channel", "symmetric": True}),
    ("int-quantized", {"num_bits": 8, "strategy": "tensor", "symmetric": False}),
    ("float-quantized", {"num_bits": 8, "type": "float", "strategy": "channel"}),
    ("float-quantized", {"num_bits": 8, "type": "float", "strategy": "tensor"}),
    ("float-quantized", {"num_bits": 8, "type": "float", "strategy": "block", "block_structure": [16, 32]}),
    ("naive-quantized", {"num_bits": 8, "type": "float", "strategy": "group", "group_size": 32}),
    ("nvfp4-pack-quantized", {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16}),
    ("mxfp4-pack-quantized", {"num_bits": 4, "type": "float", "strategy": "group", "group_size": 32, "scale_dtype": torch.uint8}),
]


def _ranges(weight: torch.Tensor, args: QuantizationArgs, strategy: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Smallest and largest weight of all that share a scale."""
    if strategy == "tensor":
        parts = weight.reshape(1, 1, -1)
    elif strategy == "block":
        rows, columns = args.block_structure or [1, 1]
        parts = weight.view(OUT // rows, rows, WIDTH // columns, columns).transpose(1, 2).flatten(2)
    else:
        parts = weight.view(OUT, -1, args.group_size or WIDTH)
    return parts.amin(-1), parts.amax(-1)


@pytest.mark.parametrize(("form", "settings"), FORMS)
def test_equals_the_library(form: str, settings: dict[str, Any], tmp_path: Path) -> None:
    args = QuantizationArgs(**settings)
    scheme = QuantizationScheme(targets=["Linear"], weights=args)
    weight = torch.randn(OUT, WIDTH, generator=torch.Generator().manual_seed(1)) * 0.1
    state = {"weight": weight}
    overall = {}
    if form.startswith("nvfp4"):
        overall = {"global_scale": (448.0 * 6.0 / weight.abs().max()).reshape(1)}
        state["weight_global_scale"] = overall["global_scale"]
    scales, zeros = calculate_qparams(*_ranges(weight, args, settings["strategy"]), args, **overall)
    if settings["strategy"] == "tensor":
        scales, zeros = scales.reshape(1), zeros.reshape(1)
    library = BaseCompressor.get_value_from_registry(form)
    stored = library.compress(state | {"weight_scale": scales, "weight_zero_point": zeros}, scheme)
    expected = library.decompress(dict(stored), scheme)["weight"].float()
    config = QuantizationConfig(config_groups={"group_0": scheme}, format=form, ignore=["lm_head"])
    path = tmp_path / "m.safetensors"
    save_file({f"model.layers.0.mlp.up_proj.{name}": tensor.contiguous() for name, tensor in stored.items()}, path)
    with WeightReader(card_of(dict(read_safetensors_header(path).tensors), path, config.model_dump(mode="json"))) as reader:
        found = reader.tensor("model.layers.0.mlp.up_proj.weight")
    exact = not form.startswith("nvfp4")  # which the library unpacks in bfloat16
    torch.testing.assert_close(found, expected, rtol=1e-6 if exact else 4e-3, atol=1e-7)
    assert float((found - weight).abs().max()) < 0.15 * float(weight.abs().max()), "the library did not quantize what the test meant"
