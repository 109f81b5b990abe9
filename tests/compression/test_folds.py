"""Scaling inputs and what makes them leaves what a layer computes as it is: for every architecture, in transformers' own modules."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from headway.artifacts.inspect import inspect
from headway.compression.awq import Scaling
from headway.compression.dense_source import DenseSource
from headway.compression.folds import folds
from headway.compression.layer_work import fold_into, read_layer
from headway.compression.quantizable import planned
from headway.compression.reference_model import ReferenceModel
from headway.quantization.weight_reader import WeightReader
from tests.engine.tiny_folder import complete_tiny_model
from tests.models.tiny_models import CONFIGS, VARIANTS

NAMES = [name for name in (*CONFIGS, *VARIANTS) if not name.startswith("gpt2")]
PRE_NORM_GATED, PLAIN = 4, 3  # folds: norm, norm, values, gate; without a gate one less
COUNTS = {"olmo2": 2, "olmo2_tied": 2, "mixtral": 3 + 6, "mixtral_tied": 3 + 3, "qwen3_moe": 3 + 8, "stablelm_parallel": 3, "stablelm_12b": 3,
          "falcon_7b": 2, "falcon_7b_bias": 2, "falcon_11b": 2}  # fmt: skip


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("folds")


@pytest.mark.parametrize("name", NAMES)
def test_a_layer_computes_the_same(name: str, root: Path) -> None:
    card = inspect(str(complete_tiny_model(name, root).folder))
    plan = planned(card)
    with WeightReader(plan.card) as reader, torch.no_grad():
        source, reference = DenseSource(plan, reader), ReferenceModel(card)
        tokens = torch.randint(3, 160, (2, 24), generator=torch.Generator().manual_seed(4))
        ends = {name: tensor for stack in source.stacks if not stack.module.startswith(("layers.", "head"))
                for name, tensor in source.as_written(stack, source.stack(stack)).items()}  # fmt: skip
        [hidden] = reference.begin(ends, tokens[None])
        layer = read_layer(source, 1, source.stacks)
        found = folds(source.config, 1, {module for module, _ in layer.names})
        gated = PRE_NORM_GATED if source.config.gated_mlp else PLAIN
        assert len(found) == COUNTS.get(name, gated if source.config.layer_sparse[1] is False else len(found))
        with reference.layer(1, layer.tensors(source)):
            before = reference.run_layer(1, hidden)
            generator = torch.Generator().manual_seed(5)
            for fold in found:
                rows = layer.names[fold.matrices[0], "weight"].width // fold.repeats
                outputs = torch.rand(rows, generator=generator) * 3 + 0.3
                inputs = outputs.view(-1, 1, fold.head).expand(-1, fold.repeats, -1).flatten()
                fold_into(layer, source, fold, Scaling(0.5, inputs, outputs), torch.bfloat16)
            reference.fill_layer(1, layer.tensors(source))
            after = reference.run_layer(1, hidden)
    assert float((after - before).abs().max()) < 2e-5 * float(before.abs().max())
    for fold in found:
        if fold.norm:
            [norm] = source.as_written(layer.names[fold.producer, "weight"], layer.stacks[fold.producer, "weight"]).values()
            torch.testing.assert_close(norm, norm.bfloat16().float(), rtol=0, atol=2e-7, msg="a divided norm is one that bfloat16 holds")
