"""Logits of rows with adapters, of rows without and of both in one batch, equal to PEFT's on transformers, float32, on all architectures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from headway.artifacts.inspect import inspect
from headway.kernels.batch import ForwardBatch
from headway.kernels.choice import default_kernels
from headway.kernels.paged_kv import PagedKV
from headway.layers.low_rank import RowUpdates
from headway.models.load import load_model
from headway.models.lora.adapted_model import adapted
from headway.models.lora.adapter_folder import read_adapter
from headway.models.recorded_forward import StepLimits
from tests.models.lora.peft_adapters import make_adapter
from tests.models.runs import Session, difference, tokens
from tests.models.tiny_models import CONFIGS, TinyModel
from tests.models.tiny_sizes import SERVED

Tiny = Callable[[str], TinyModel]
LENGTHS = (30, 20, 25, 9)


@pytest.mark.parametrize("name", CONFIGS)
def test_every_row_is_computed_with_its_own_adapter(tiny: Tiny, tmp_path: Path, name: str) -> None:
    kernels = default_kernels(torch.float32)
    source = tiny(name)
    model = load_model(inspect(str(source.folder)), torch.float32, context_length=SERVED, kernels=kernels)
    found = adapted(model, inspect(str(source.folder)).architecture, kernels)
    kinds = found.targets.kinds
    adapters = [
        make_adapter(source.oracle, tmp_path / "a", seed=1, rank=4, target_modules=kinds),
        make_adapter(source.oracle, tmp_path / "b", seed=2, rank=8, use_rslora=True, target_modules=kinds[:1]),
        make_adapter(source.oracle, tmp_path / "c", seed=3, rank=4, target_modules=kinds, rank_pattern={kinds[-1]: 6}, alpha_pattern={kinds[-1]: 11}),
    ]
    updates = [read_adapter(str(each.folder), found.targets, 16, torch.float32).updates for each in adapters]

    session = Session(model, LENGTHS)
    limits = StepLimits(sum(LENGTHS), len(LENGTHS), SERVED)
    run = found.forward(model.prepared(session.kv, limits), model.forward)
    rows: RowUpdates = ()

    def forward(batch: ForwardBatch, kv: PagedKV) -> torch.Tensor:
        return run(replace(batch, adapters=rows), kv)

    session.forward = forward
    texts = [tokens(seed, length) for seed, length in enumerate(LENGTHS)]
    # Sequences 0 and 3 share an adapter and are no neighbours; sequence 1 has none.
    rows = ((torch.tensor([*range(30), *range(75, 84)]), updates[0]), (slice(50, 75), updates[1]))
    ours = session.step(*((i, text, len(text)) for i, text in enumerate(texts)))
    theirs = [adapters[0].logits(texts[0]), source.logits(texts[1]), adapters[1].logits(texts[2]), adapters[0].logits(texts[3])]
    for mine, wanted in zip(ours, theirs, strict=True):
        assert difference(mine, wanted) < 1e-4
    rows = ()
    assert difference(session.step((1, texts[1], len(texts[1])))[0], source.logits(texts[1])) < 1e-4
    rows = ((slice(0, 30), updates[2]),)
    assert difference(session.step((0, texts[0], len(texts[0])))[0], adapters[2].logits(texts[0])) < 1e-4
    assert difference(adapters[2].logits(texts[0]), source.logits(texts[0])) > 1e-2
