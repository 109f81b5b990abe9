"""GGUF files of the architectures: names, permuted rows, norms that are stored with one added."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from headway.artifacts.inspect import inspect
from headway.models.load import load_model
from tests.models.runs import in_chunks
from tests.models.tiny_gguf import ARCHITECTURES, write_gguf
from tests.models.tiny_models import TinyModel


@pytest.mark.parametrize("name", list(ARCHITECTURES))
def test_logits_of_a_gguf_file(tiny: Callable[[str], TinyModel], name: str, tmp_path: Path) -> None:
    model = tiny(name)
    path = tmp_path / "m.gguf"
    write_gguf(model, path)
    card = inspect(str(path))
    # Settings that the writer left out are not what is tested here: they come from the original config.
    original = {**model.oracle.config.to_dict(), "architectures": card.config["architectures"]}
    loaded = load_model(replace(card, config=original), torch.float32)
    text = torch.randint(3, 160, (60,), generator=torch.Generator().manual_seed(0)).tolist()
    assert (in_chunks(loaded, text, 60) - model.logits(text)).abs().max() <= 1e-4
