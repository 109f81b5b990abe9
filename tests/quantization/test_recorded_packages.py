"""Weights that bitsandbytes and ModelOpt wrote, and what they read back of them themselves (record_bitsandbytes.py, record_modelopt.py)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from headway.artifacts.safetensors_header import read_safetensors_header
from headway.quantization.logical_card import logical_tensors
from headway.quantization.weight_reader import WeightReader
from tests.quantization import record_bitsandbytes, record_modelopt

BITS = {"quant_method": "bitsandbytes", "source": "config.json"}
OPT = {"quant_method": "modelopt", "source": "hf_quant_config.json"}
CASES = [
    (record_bitsandbytes.FILE, "nf4", BITS), (record_bitsandbytes.FILE, "fp4", BITS), (record_bitsandbytes.FILE, "int8", BITS),
    (record_modelopt.FILE, "nvfp4", {**OPT, "quant_algo": "NVFP4"}), (record_modelopt.FILE, "fp8", {**OPT, "quant_algo": "FP8"}),
    (record_modelopt.FILE, "fp8_rows", {**OPT, "quant_algo": "FP8_PER_CHANNEL_PER_TOKEN"}),
]  # fmt: skip


@pytest.mark.parametrize(("file", "kind", "claim"), CASES, ids=[case[1] for case in CASES])
def test_what_the_package_reads_back(file: Path, kind: str, claim: dict[str, Any]) -> None:
    stored = {name: each for name, each in read_safetensors_header(file).tensors.items() if name.startswith(f"{kind}.")}
    expected = load_file(file)[f"read.{kind}"]
    assert expected.shape == (32, 64)
    with WeightReader(logical_tensors(stored, claim, str(file))) as reader:
        torch.testing.assert_close(reader.tensor(f"{kind}.weight"), expected, rtol=1e-6, atol=1e-7)
