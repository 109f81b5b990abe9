"""What has to know of another device: tensors of a batch, the cache, memory; and what is refused there."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from headway.artifacts.inspect import inspect
from headway.engine.device_memory import device_memory
from headway.errors import NotBuiltError
from headway.host.memory_budget import MemoryBudget
from headway.kernels.float8_matrix import Float8Matrix
from headway.kernels.interface import Float8Kernels
from headway.kernels.paged_kv import KVShape, PagedKV
from headway.kernels.torch_backend import TORCH
from headway.kernels.triton.float8_linear import Float8Linear, can_multiply
from headway.models.cpu_only import refuse_other_devices
from headway.models.decoder import Decoder
from headway.models.native import plan_native
from tests.kernels.batches import Chunk, make_batch
from tests.models.runs import Session, tokens
from tests.models.tiny_models import TinyModel
from tests.models.tiny_sizes import SERVED

ELSEWHERE = torch.device("meta")


def test_tensors_of_a_batch_move_and_arrays_stay() -> None:
    batch = make_batch([Chunk([7, 8], 5, [2, 0])], 4)
    assert batch.on(torch.device("cpu")) is batch
    moved = batch.on(ELSEWHERE)
    assert {part.device for part in (moved.token_ids, moved.positions, moved.slots, moved.logits_rows)} == {ELSEWHERE}
    assert moved.block_tables is batch.block_tables


def test_a_cache_elsewhere() -> None:
    kv = PagedKV(3, 4, KVShape(2, 1, 8), torch.bfloat16, ELSEWHERE)
    kv.clear([1])
    assert {part.device for part in (*kv.layers, *kv.block_rows, *kv.token_rows)} == {ELSEWHERE}


def test_memory_of_a_gpu_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (3 << 30, 10 << 30))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "Some GPU")
    assert device_memory(torch.device("cuda", 0)) == (MemoryBudget(10 << 30, 10 << 30, 3 << 30, "Some GPU"), 7 << 30)
    assert device_memory(torch.device("cpu"))[0].limited_by != "Some GPU"


def test_what_is_built_for_the_cpu_only() -> None:
    refuse_other_devices(TORCH, "the encoder bert")
    with pytest.raises(NotBuiltError, match="the encoder bert on cuda:0 is not built"):
        refuse_other_devices(replace(TORCH, device=torch.device("cuda", 0)), "the encoder bert")


def test_matrices_that_fp8_rounds_are_multiplied_as_such(one_layer: TinyModel) -> None:
    """With kernels for it; the head, which is not rounded, stays as it is. Inputs are rounded too: logits agree to some percent."""
    seen: list[tuple[int, ...]] = []

    def pack(matrix: Float8Matrix, bias: torch.Tensor | None) -> Float8Linear:
        seen.append(tuple(matrix.codes.shape))
        return Float8Linear(torch.device("cpu"), matrix, bias)

    plan = replace(plan_native(inspect(str(one_layer.folder)), SERVED), rounding="fp8")
    kernels = replace(TORCH, float8=Float8Kernels(can_multiply, pack))
    wanted, model = (plan.load(torch.float32, each, lambda done, total: None) for each in (TORCH, kernels))
    assert seen == [(128, 64), (64, 64), (192, 64), (64, 96)]
    assert isinstance(model, Decoder)
    assert not isinstance(model.head.packed, Float8Linear)
    text = tokens(1, 8)
    exact, found = (Session(each, [8]).step((0, text, 8))[0] for each in (wanted, model))
    assert 0 < float((found - exact).norm() / exact.norm()) < 0.1
    none = replace(TORCH, float8=Float8Kernels(lambda out, width: False, pack))
    plan.load(torch.float32, none, lambda done, total: None)
    assert len(seen) == 4
