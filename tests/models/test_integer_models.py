"""Models that compute with the integers of their checkpoint: the same logits as with the dequantized ones, and which matrices they are."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import gguf
import pytest
import torch
from safetensors.torch import load_file

from headway.artifacts.inspect import inspect
from headway.capacity.weight_bytes import head_copy, held_weight_bytes
from headway.kernels.integer_reference import IntegerLinear, reference_integers
from headway.kernels.integer_weight import IntegerForm
from headway.kernels.torch_backend import TORCH
from headway.models.causal_lm import CausalLM
from headway.models.held_bytes import held_bytes
from headway.models.load import load_model, load_planned
from headway.models.native import plan_native
from headway.models.prepared import identity
from tests.models.runs import difference, in_chunks, tokens
from tests.models.test_quantized_checkpoints import packed
from tests.models.tiny_gguf import write_gguf
from tests.models.tiny_models import TinyModel
from tests.quantization.packers import BY_NAME

Tiny = Callable[[str], TinyModel]
TEXT = tokens(3, 30)
INTEGERS = replace(TORCH, integers=reference_integers())


def packed_linears(model: CausalLM) -> dict[str, Any]:
    """Of the first layer, and the head."""
    layer: Any = model.layers[0]  # type: ignore[index]
    found = {"qkv": layer.attention.qkv, "output": layer.attention.output.projection, "head": model.head}
    return {name: module.packed for name, module in found.items()} | {"up": layer.mlp.gate_up.packed, "down": layer.mlp.down.projection.packed}


def forms(model: CausalLM) -> dict[str, IntegerForm | None]:
    return {name: each.chunks[0].form if isinstance(each, IntegerLinear) else None for name, each in packed_linears(model).items()}


TYPES = gguf.GGMLQuantizationType
FORMS = {TYPES.Q4_0: IntegerForm(4, 32, 8), TYPES.Q4_1: IntegerForm(4, 32, minimums=True), TYPES.Q8_0: IntegerForm(8, 32)}


@pytest.mark.parametrize("stored", list(FORMS), ids=lambda stored: stored.name)
@pytest.mark.parametrize("name", ["smollm", "qwen2", "phi3"])
def test_a_gguf_keeps_its_integers(tiny: Tiny, name: str, stored: gguf.GGMLQuantizationType, tmp_path: Path) -> None:
    """smollm: rows of queries and keys in another order, a head that is the embedding; phi3: matrices that are stored fused."""
    write_gguf(tiny(name), tmp_path / "m.gguf", stored)
    card = inspect(str(tmp_path / "m.gguf"))
    ours = load_model(card, torch.float32, kernels=INTEGERS)
    assert set(forms(ours).values()) == {FORMS[stored]}
    assert difference(in_chunks(ours, TEXT, 11), in_chunks(load_model(card, torch.float32), TEXT, 11)) < 1e-4


@pytest.mark.parametrize("name", ["awq", "gptq 8 bit", "gptq 4 bit act-order", "packed 4 bit zero points", "int8 by output", "fp8 one scale"])
def test_packed_checkpoints_keep_theirs(tiny: Tiny, name: str, tmp_path: Path) -> None:
    model = packed(tiny("qwen2"), BY_NAME[name], tmp_path)
    ours = load_model(inspect(str(tmp_path)), torch.float32, kernels=INTEGERS)
    found = forms(ours)
    assert found.pop("head") is None
    assert (None in found.values()) == ("act-order" in name or "fp8" in name)
    assert difference(in_chunks(ours, TEXT, 23), model.logits(TEXT)) < 2e-4


def test_fused_matrices_of_different_types_become_the_wider_one(tiny: Tiny, tmp_path: Path) -> None:
    """As in files of mixed types: values in more bits than queries and keys, and a gate that is not quantized at all."""
    mixed = {"attn_v": TYPES.Q8_0, "ffn_gate": TYPES.F16}
    write_gguf(tiny("smollm"), tmp_path / "m.gguf", TYPES.Q4_1, lambda name: next((kind for part, kind in mixed.items() if part in name), None))
    card = inspect(str(tmp_path / "m.gguf"))
    ours = load_model(card, torch.float32, kernels=INTEGERS)
    found = forms(ours)
    assert found["qkv"] == IntegerForm(8, 32, minimums=True)
    assert found["up"] is None
    assert found["down"] == FORMS[TYPES.Q4_1]
    assert difference(in_chunks(ours, TEXT, 11), in_chunks(load_model(card, torch.float32), TEXT, 11)) < 1e-4


def test_forms_that_kernels_refuse_are_dequantized(tiny: Tiny, tmp_path: Path) -> None:
    write_gguf(tiny("smollm"), tmp_path / "m.gguf", TYPES.Q4_1)
    card = inspect(str(tmp_path / "m.gguf"))
    every = reference_integers()
    some = replace(every, held_bytes=lambda form, out, width: every.held_bytes(form, out, width) if out == width else None)
    ours = load_model(card, torch.float32, kernels=replace(TORCH, integers=some))
    assert {name for name, form in forms(ours).items() if form} == {"output"}
    assert difference(in_chunks(ours, TEXT, 11), in_chunks(load_model(card, torch.float32), TEXT, 11)) < 1e-4


@pytest.mark.parametrize("method", ["fp8", "int8", "int4"])
@pytest.mark.parametrize("name", ["qwen2", "gpt2"])
def test_what_is_quantized_while_loading(tiny: Tiny, name: str, method: str, tmp_path: Path) -> None:
    """gpt2: matrices that are stored transposed."""
    plan = replace(plan_native(inspect(str(tiny(name).folder)), 256), rounding=method)
    ours = load_planned(plan, torch.float32, kernels=INTEGERS)
    layer: Any = ours.layers[0]  # type: ignore[index]
    found = {each.packed.chunks[0].form.bits for each in (layer.attention.qkv, layer.mlp.down.projection) if isinstance(each.packed, IntegerLinear)}
    assert found == {"fp8": set(), "int8": {8}, "int4": {4}}[method]
    assert isinstance(ours.head.packed, IntegerLinear) == (method != "fp8")  # type: ignore[attr-defined]
    assert difference(in_chunks(ours, TEXT, 11), in_chunks(load_planned(plan, torch.float32), TEXT, 11)) < 1e-4


def test_experts_keep_their_integers(tiny: Tiny, tmp_path: Path) -> None:
    """All experts of a layer lie in one tensor; `down` has a width that no block divides."""
    write_gguf(tiny("qwen3_moe"), tmp_path / "m.gguf", exception=lambda name: TYPES.Q8_0 if "gate_exps" in name or "up_exps" in name else None)
    card = inspect(str(tmp_path / "m.gguf"))
    ours = load_model(card, torch.float32, kernels=INTEGERS)
    experts: Any = ours.layers[0].mlp.experts  # type: ignore[index]
    assert all(isinstance(expert.gate_up.packed, IntegerLinear) and not isinstance(expert.down.packed, IntegerLinear) for expert in experts)
    assert difference(in_chunks(ours, TEXT, 11), in_chunks(load_model(card, torch.float32), TEXT, 11)) < 1e-4


@pytest.mark.parametrize("rounding", [None, "int8"])
def test_what_is_reckoned_is_what_is_held(tiny: Tiny, rounding: str | None, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A tied head has codes of its own beside the table of floats. The rest is tables of the rotation."""
    write_gguf(tiny("smollm"), tmp_path / "m.gguf", TYPES.Q4_1)
    reference = str(tmp_path / "m.gguf") if rounding is None else str(tiny("smollm").folder)
    plan = replace(plan_native(inspect(reference), 256), rounding=rounding)
    with caplog.at_level(logging.INFO):
        ours = load_planned(plan, torch.bfloat16, kernels=INTEGERS)
    share = plan.integers(INTEGERS)
    assert share.parameters > 0.7 * plan.parameters
    reckoned = held_weight_bytes(plan.parameters, head_copy(plan.card), 2, share)
    assert held_bytes(ours) == pytest.approx(reckoned, rel=0.01)
    assert held_bytes(load_planned(plan, torch.bfloat16, kernels=TORCH)) > 1.1 * reckoned
    assert plan.integers(TORCH).parameters == 0
    lines = [line for line in caplog.messages if line.startswith("Integer weights")]
    assert len(lines) == 1
    assert f"{8 * share.nbytes / share.parameters:.2f} bits each" in lines[0]
    assert any("kept as what int8 holds" in line for line in caplog.messages) == (rounding is not None)


def test_prepared_weights_hold_what_is_dequantized_only(tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWAY_CACHE", str(tmp_path))
    monkeypatch.setattr(identity, "SMALLEST_BYTES", 1)
    write_gguf(tiny("smollm"), tmp_path / "m.gguf", TYPES.Q4_1)
    card = inspect(str(tmp_path / "m.gguf"))
    found = [in_chunks(load_model(card, torch.float32, kernels=kernels), TEXT, 30) for kernels in (INTEGERS, TORCH, INTEGERS, TORCH)]
    assert torch.equal(found[0], found[2])
    assert torch.equal(found[1], found[3])
    small, large = sorted(tmp_path.rglob("prepared/*.safetensors"), key=lambda path: path.stat().st_size)
    kept = set(load_file(small))
    assert "embedding.weight" in kept
    assert not [name for name in kept if "mlp.down" in name or name == "head.weight"]
    assert large.stat().st_size > 1.5 * small.stat().st_size
