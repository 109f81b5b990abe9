"""Weights that bitsandbytes wrote, and what it read back of them itself (record_bitsandbytes.py)."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import load_file

from headway.artifacts.safetensors_header import read_safetensors_header
from headway.quantization.logical_card import logical_tensors
from headway.quantization.weight_reader import WeightReader
from tests.quantization.record_bitsandbytes import FILE, OUT, WIDTH


@pytest.mark.parametrize("kind", ["nf4", "fp4", "int8"])
def test_what_the_package_reads_back(kind: str) -> None:
    stored = {name: each for name, each in read_safetensors_header(FILE).tensors.items() if name.startswith(f"{kind}.")}
    expected = load_file(FILE)[f"read.{kind}"]
    assert expected.shape == (OUT, WIDTH)
    with WeightReader(logical_tensors(stored, {"quant_method": "bitsandbytes", "source": "config.json"}, str(FILE))) as reader:
        torch.testing.assert_close(reader.tensor(f"{kind}.weight"), expected, rtol=1e-6, atol=1e-7)
