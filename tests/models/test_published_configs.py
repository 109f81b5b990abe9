"""Well-known models as the hub has them, cut down: logits equal to transformers, which reads the same config.json."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from headway.artifacts.inspect import inspect
from headway.models.load import load_model
from headway.models.native import NativePlan
from headway.models.plan import plan_model
from tests.models.published_configs import PUBLISHED
from tests.models.published_model import published_model
from tests.models.published_tensors import NAMES
from tests.models.runs import in_chunks

SERVED = 256
TEXT = torch.randint(4, 156, (100,), generator=torch.Generator().manual_seed(0)).tolist()


@pytest.fixture(scope="session")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("published")


@pytest.mark.parametrize("name", list(PUBLISHED))
def test_logits(hub: Path, name: str) -> None:
    model = published_model(name, hub)
    card = inspect(str(model.folder))
    assert isinstance(plan_model(card, SERVED), NativePlan)
    expected = model.logits(TEXT)
    ours = in_chunks(load_model(card, torch.float32, context_length=SERVED, implementation="vllm"), TEXT, 33)
    assert (ours - expected).abs().max() <= 1e-4 * max(1.0, float(expected.std()))


@pytest.mark.parametrize("name", list(NAMES))
def test_the_files_have_the_names_of_the_hub(hub: Path, name: str) -> None:
    assert NAMES[name] in inspect(str(published_model(name, hub).folder)).tensors
