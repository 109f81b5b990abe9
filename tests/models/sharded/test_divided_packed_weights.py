"""Packed matrices are read a rank's part at a time: the same logits as transformers with the matrices unpacked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import gguf
import pytest
import torch
from transformers import LlamaConfig

from headway.kvcache.runs import Run, forward_batch
from tests.models.sharded.rank_threads import divided_logits, whole_plan
from tests.models.test_quantized_checkpoints import TEXT, packed
from tests.models.tiny_gguf import write_gguf
from tests.models.tiny_models import TinyModel, make_tiny_model
from tests.models.tiny_sizes import SERVED, SIZES
from tests.quantization.packers import BY_NAME


def _batch() -> list:
    return [forward_batch([Run(TEXT, [1, 2, 3], 0, len(TEXT), [])], list(range(len(TEXT))), 16)]


@pytest.mark.parametrize("name", sorted(BY_NAME))
def test_every_packed_format(tiny: Callable[[str], TinyModel], name: str, tmp_path: Path) -> None:
    """Groups of 32 inputs end where the part of a rank does in attention (32 of 64), not in the feed-forward (48 of 96)."""
    model = packed(tiny("qwen2"), BY_NAME[name], tmp_path)
    plan = whole_plan(str(tmp_path), SERVED)
    (found,) = divided_logits(plan, _batch(), 4, 2, 1)
    torch.testing.assert_close(found, model.logits(TEXT), rtol=3e-4, atol=3e-4)


def _wide(folder: Path) -> TinyModel:
    """Two ranks have 64 columns of every matrix each."""
    sizes = SIZES | {"hidden_size": 128, "intermediate_size": 128}
    return make_tiny_model("smollm", LlamaConfig(**sizes, num_hidden_layers=2, tie_word_embeddings=True), folder)


@pytest.mark.parametrize("stored", ["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0"])
def test_gguf(stored: str, tmp_path: Path) -> None:
    """Rows of queries and keys are stored in another order; blocks of 32 numbers end where the part of a rank does."""
    write_gguf(_wide(tmp_path), tmp_path / "m.gguf", gguf.GGMLQuantizationType[stored])
    plan = whole_plan(str(tmp_path / "m.gguf"), SERVED)
    (whole,) = divided_logits(plan, _batch(), 4, 1, 1)
    (found,) = divided_logits(plan, _batch(), 4, 2, 1)
    torch.testing.assert_close(found, whole, rtol=3e-4, atol=3e-4)
