"""Every GGUF block type against the numpy dequantizer of the gguf package, over random blocks."""

from __future__ import annotations

import gguf
import numpy as np
import pytest
import torch

from headway.artifacts.gguf_types import BLOCK_TYPE_BY_NAME
from headway.quantization.gguf.unpackers import UNPACKERS

# Byte offsets of the float16 fields; random bytes there would be NaN or infinity.
HALVES = {
    "Q4_0": (0,), "Q4_1": (0, 2), "Q5_0": (0,), "Q5_1": (0, 2), "Q8_0": (0,), "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,),
    "Q2_K": (80, 82), "Q3_K": (108,), "IQ4_NL": (0,), "IQ4_XS": (0,), "MXFP4": (),
}  # fmt: skip


def test_the_list_of_types_is_the_promised_one() -> None:
    assert set(UNPACKERS) == set(HALVES)


@pytest.mark.parametrize("name", list(UNPACKERS))
@pytest.mark.parametrize("seed", [0, 1])
def test_equals_the_gguf_package(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    block = BLOCK_TYPE_BY_NAME[name]
    raw = rng.integers(0, 256, (300, block.nbytes), dtype=np.uint8)
    for offset in HALVES[name]:
        raw[:, offset : offset + 2] = rng.normal(size=(300, 1)).astype(np.float16).view(np.uint8)
    if name == "MXFP4":
        raw[:, 0] = rng.integers(100, 140, 300)  # exponents of numbers of a usual size
    expected = gguf.quants.dequantize(raw, gguf.GGMLQuantizationType[name]).reshape(300, block.elements)
    ours = UNPACKERS[name](torch.from_numpy(raw))
    assert ours.dtype == torch.float32
    torch.testing.assert_close(ours, torch.from_numpy(expected), atol=1e-6, rtol=1e-6)
