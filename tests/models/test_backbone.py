"""Decoders without an output head, from the checkpoints of embedders and readouts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import Qwen3ForCausalLM

from headway.artifacts.inspect import inspect
from headway.errors import ArtifactError, NotBuiltError
from headway.kernels.torch_backend import TORCH
from headway.kvcache.runs import Run, forward_batch
from headway.models.backbone import plan_backbone
from headway.models.causal_lm import CausalLM
from tests.models.runs import Session, tokens
from tests.models.tiny_models import CONFIGS as TINY
from tests.models.tiny_models import make_tiny_model, tiny_model


def _hidden(model: CausalLM, row: list[int]) -> torch.Tensor:
    session = Session(model, [len(row)])
    batch = forward_batch([Run(row, [int(block) for block in session.tables[0]], 0, len(row))], range(len(row)), session.kv.block_size)
    return model(batch, session.kv)


def _theirs(oracle: Qwen3ForCausalLM, row: list[int]) -> torch.Tensor:
    with torch.no_grad():
        return oracle.model(torch.tensor([row]), use_cache=False).last_hidden_state[0]


def _load(folder: Path, prefix: str | None = None) -> CausalLM:
    return plan_backbone(inspect(str(folder)), 128, prefix).load(torch.float32, TORCH, lambda done, total: None)


@pytest.fixture
def bare(tmp_path: Path) -> tuple[Path, Qwen3ForCausalLM]:
    """As `Qwen3Model.save_pretrained` writes it: no `model.`, no head."""
    tiny = make_tiny_model("source", TINY["qwen3"](), tmp_path)
    tiny.oracle.model.save_pretrained(tmp_path / "bare")
    return tmp_path / "bare", tiny.oracle


def _rename(folder: Path, prefix: str, **more: torch.Tensor) -> None:
    path = folder / "model.safetensors"
    save_file({prefix + name: tensor for name, tensor in load_file(path).items()} | more, path, metadata={"format": "pt"})


@pytest.mark.parametrize("prefix", ["", "model.", "backbone.", "model.language_model."])
def test_hidden_states_equal_those_of_transformers(bare: tuple[Path, Qwen3ForCausalLM], prefix: str) -> None:
    folder, oracle = bare
    _rename(folder, prefix)
    row = tokens(3)
    for named in (None, prefix):
        assert float((_hidden(_load(folder, named), row) - _theirs(oracle, row)).abs().max()) < 2e-4


def test_a_head_is_left_out(tmp_path: Path) -> None:
    tiny = tiny_model("qwen3", tmp_path)
    card = inspect(str(tiny.folder))
    plan = plan_backbone(card, 128)
    assert plan.parameters == card.parameters - card.tensors["lm_head.weight"].elements
    row = tokens(4)
    assert float((_hidden(_load(tiny.folder), row) - _theirs(tiny.oracle, row)).abs().max()) < 2e-4


def test_tensors_outside_of_the_prefix_are_the_callers(bare: tuple[Path, Qwen3ForCausalLM]) -> None:
    folder, oracle = bare
    _rename(folder, "backbone.", **{"decision.weight": torch.ones(3, 64)})
    row = tokens(3, 20)
    assert float((_hidden(_load(folder, "backbone."), row) - _theirs(oracle, row)).abs().max()) < 2e-4


def test_tensors_that_nobody_knows_are_refused(bare: tuple[Path, Qwen3ForCausalLM]) -> None:
    folder, _ = bare
    _rename(folder, "", **{"dense.weight": torch.ones(3, 64)})
    with pytest.raises(ArtifactError) as error:
        plan_backbone(inspect(str(folder)), 128)
    assert error.value.reason == "unexpected_tensor"


def test_a_prefix_that_is_not_there_is_a_missing_tensor(bare: tuple[Path, Qwen3ForCausalLM]) -> None:
    with pytest.raises(ArtifactError) as error:
        plan_backbone(inspect(str(bare[0])), 128, "backbone.")
    assert error.value.reason == "missing_tensor"


@pytest.mark.parametrize("field", ["is_causal", "use_bidirectional_attention"])
def test_attention_in_both_directions_is_refused(bare: tuple[Path, Qwen3ForCausalLM], field: str) -> None:
    folder, _ = bare
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {field: field != "is_causal"}))
    with pytest.raises(NotBuiltError, match=f"see in both directions .{field} in its configuration"):
        plan_backbone(inspect(str(folder)), 128)
