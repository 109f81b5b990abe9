"""`--quantization fp8|int8|int4` on an unquantized checkpoint: which matrices are rounded, and where it is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from headway.artifacts.inspect import inspect
from headway.engine.config import EngineConfig
from headway.engine.planned_model import planned_model
from headway.errors import NotBuiltError
from headway.kernels.torch_backend import TORCH
from headway.models.load import load_planned
from headway.models.native import plan_native
from headway.models.prepared import identity
from headway.quantization.online import round_weight
from tests.models.runs import difference, in_chunks, tokens
from tests.models.tiny_models import CONFIGS, TinyModel, make_tiny_model

pytestmark = pytest.mark.usefixtures("unrounded")

Tiny = Callable[[str], TinyModel]
TEXT = tokens(3, 30)


@pytest.mark.parametrize("method", ["fp8", "int8", "int4"])
def test_matrices_of_layers_are_rounded_one_by_one_and_the_head_to_8_bits(method: str, tmp_path: Path) -> None:
    model = make_tiny_model("qwen2", CONFIGS["qwen2"](), tmp_path)
    plan = replace(plan_native(inspect(str(model.folder)), 256), rounding=method)
    before = model.logits(TEXT)
    model.oracle.lm_head.weight = torch.nn.Parameter(model.oracle.lm_head.weight.detach().clone())  # the table is not rounded
    for name, weight in model.oracle.named_parameters():
        if name.endswith("_proj.weight"):
            round_weight(weight.data, method)
        elif name == "lm_head.weight" and method != "fp8":
            round_weight(weight.data, "int8")
    ours = in_chunks(load_planned(plan, torch.float32), TEXT, 30)
    assert difference(ours, model.logits(TEXT)) < 2e-4
    assert difference(ours, before) > 1e-2


def test_prepared_weights_are_those_of_the_method(tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWAY_CACHE", str(tmp_path))
    monkeypatch.setattr(identity, "SMALLEST_BYTES", 1)
    plan = plan_native(inspect(str(tiny("smollm").folder)), 256)
    found = [in_chunks(load_planned(replace(plan, rounding=method), torch.bfloat16), TEXT, 30) for method in (None, "int4", "int4", None)]
    assert torch.equal(found[1], found[2])
    assert torch.equal(found[0], found[3])
    assert not torch.equal(found[0], found[1])
    assert len(list(tmp_path.rglob("*.safetensors"))) == 2


@pytest.mark.parametrize(("name", "implementation", "says"), [("mixtral", "vllm", "experts"), ("smollm", "transformers", "by transformers")])
def test_refused(tiny: Tiny, name: str, implementation: str, says: str) -> None:
    folder = str(tiny(name).folder)
    config = EngineConfig(model=folder, model_impl=implementation, max_model_len=64, kv_cache_memory_bytes=1 << 20)  # type: ignore[arg-type]
    with pytest.raises(NotBuiltError, match=says):
        planned_model(config, inspect(folder), torch.float32, TORCH, "fp8")
