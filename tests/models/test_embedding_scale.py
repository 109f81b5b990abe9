"""Embeddings in bfloat16: Gemma rounds the factor first, Granite does not."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from headway.artifacts.inspect import inspect
from headway.models.decoder import Decoder
from headway.models.load import load_model
from tests.models.tiny_models import TinyModel


@pytest.mark.parametrize(("name", "changes"), [("gemma2", {}), ("gemma3", {}), ("granite", {"embedding_multiplier": 6.3})])
def test_every_bit_is_that_of_transformers(tiny: Callable[[str], TinyModel], name: str, changes: dict[str, Any]) -> None:
    model = tiny(name)
    card = inspect(str(model.folder))
    ours = load_model(replace(card, config={**card.config, **changes}), torch.bfloat16)
    assert isinstance(ours, Decoder)
    theirs = copy.deepcopy(model.oracle).bfloat16()
    if changes:
        theirs.model.embedding_multiplier = changes["embedding_multiplier"]
    ids = torch.arange(3, 160)
    with torch.no_grad():
        expected = theirs(ids[None], output_hidden_states=True).hidden_states[0][0]
    assert torch.equal(ours.embedding(ids), expected)
