"""Native kernels on the integers of a checkpoint: as the reference that rounds its inputs, through the recorded forward pass as well."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import gguf
import pytest
import torch

from headway.artifacts.inspect import inspect
from headway.capacity.weight_bytes import head_copy, held_weight_bytes
from headway.kernels.integer_reference import reference_integers
from headway.kernels.interface import Kernels
from headway.kernels.native.backend import native_kernels
from headway.kernels.native.library import native_library
from headway.kernels.native.linear_integer import IntegerLinear
from headway.kernels.torch_backend import TORCH
from headway.models.held_bytes import held_bytes
from headway.models.load import load_planned
from headway.models.native import NativePlan, plan_native
from tests.models.runs import in_chunks, tokens
from tests.models.test_quantized_checkpoints import packed
from tests.models.tiny_gguf import write_gguf
from tests.models.tiny_models import TinyModel
from tests.quantization.packers import BY_NAME

Tiny = Callable[[str], TinyModel]
TYPES = gguf.GGMLQuantizationType
TEXT = tokens(3, 30)


@pytest.fixture(params=native_library().sets or (None,))
def native(request: pytest.FixtureRequest) -> Kernels:
    if request.param is None:
        pytest.skip(native_library().missing or "no native kernels")
    return native_kernels(request.param, 1)


def of_gguf(tiny: Tiny, folder: Path) -> NativePlan:
    """4 and 8 bits in one matrix, rows in another order, a head of its own beside the table."""
    write_gguf(tiny("smollm"), folder / "m.gguf", TYPES.Q4_1, lambda name: TYPES.Q8_0 if "attn_v" in name or "token_embd" in name else None)
    return plan_native(inspect(str(folder / "m.gguf")), 256)


def of_awq(tiny: Tiny, folder: Path) -> NativePlan:
    packed(tiny("qwen2"), BY_NAME["awq"], folder)
    return plan_native(inspect(str(folder)), 256)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("made", [of_gguf, of_awq])
def test_logits_are_those_of_rounded_inputs(
    tiny: Tiny, made: Callable[[Tiny, Path], NativePlan], dtype: torch.dtype, native: Kernels, tmp_path: Path
) -> None:
    plan = made(tiny, tmp_path)
    ours: Any = load_planned(plan, dtype, kernels=native)
    assert isinstance(ours.layers[0].attention.qkv.packed, IntegerLinear)
    assert isinstance(ours.head.packed, IntegerLinear) == (made is of_gguf)
    found = in_chunks(ours, TEXT, 11)
    rounded = in_chunks(load_planned(plan, torch.float32, kernels=replace(TORCH, integers=reference_integers(32))), TEXT, 11)
    exact = in_chunks(load_planned(plan, torch.float32), TEXT, 11)
    near, far = (float((found - other).square().mean().sqrt() / exact.std()) for other in (rounded, exact))
    # What is not exact in the kernel (minimums of AWQ are kept as float16, activations as bfloat16) moves some inputs to the next code.
    assert near < (0.08 if dtype == torch.bfloat16 else 0.03 if made is of_awq else 1e-5)
    assert far < 0.08


def test_counted_and_reckoned_agree(tiny: Tiny, native: Kernels, tmp_path: Path) -> None:
    plan = of_gguf(tiny, tmp_path)
    reckoned = held_weight_bytes(plan.parameters, head_copy(plan.card), 2, plan.integers(native))
    assert held_bytes(load_planned(plan, torch.bfloat16, kernels=native)) == pytest.approx(reckoned, rel=0.05)
