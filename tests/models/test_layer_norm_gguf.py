"""GGUF files of StarCoder 2, StableLM, GPT-2 and Falcon: the file alone is enough."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from transformers import StableLmConfig

from headway.artifacts.inspect import inspect
from headway.errors import NotBuiltError
from headway.models.load import load_model
from tests.models.gguf_oracle import gguf_oracle
from tests.models.runs import in_chunks
from tests.models.tiny_layer_norm_gguf import write_layer_norm_gguf
from tests.models.tiny_models import TinyModel, make_tiny_model
from tests.models.tiny_sizes import SIZES

Tiny = Callable[[str], TinyModel]
TEXT = torch.randint(3, 160, (60,), generator=torch.Generator().manual_seed(0)).tolist()


def as_transformers_reads_it(model: TinyModel, path: Path) -> None:
    write_layer_norm_gguf(model, path)
    ours = in_chunks(load_model(inspect(str(path)), torch.float32), TEXT, 25)
    assert (ours - model.logits(TEXT)).abs().max() <= 1e-4
    with torch.no_grad():
        theirs = gguf_oracle(path)(torch.tensor([TEXT])).logits[0]
    assert (ours - theirs).abs().max() <= 1e-4


@pytest.mark.parametrize("name", ["starcoder2_full", "stablelm_2", "gpt2", "falcon_7b"])
def test_logits_of_a_gguf_file(tiny: Tiny, name: str, tmp_path: Path) -> None:
    as_transformers_reads_it(tiny(name), tmp_path / "m.gguf")


def test_stablelm_with_attention_and_feed_forward_side_by_side(tmp_path: Path) -> None:
    config = StableLmConfig(**SIZES, num_hidden_layers=2, use_parallel_residual=True, partial_rotary_factor=0.25)
    as_transformers_reads_it(make_tiny_model("parallel", config, tmp_path), tmp_path / "m.gguf")


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("stablelm_12b", "norms of queries and keys"), ("stablelm", "norms of queries and keys"),
        ("falcon_40b", "several key heads"), ("falcon_11b", "several key heads"),
    ],
)  # fmt: skip
def test_forms_that_no_other_reader_confirms_are_refused(tiny: Tiny, name: str, what: str, tmp_path: Path) -> None:
    """transformers' own reader knows neither StableLM's norms of heads nor Falcon with several key heads."""
    path = tmp_path / "m.gguf"
    write_layer_norm_gguf(tiny(name), path)
    with pytest.raises(NotBuiltError, match=f"GGUF files of .* with {what} are not built") as caught:
        load_model(inspect(str(path)), torch.float32)
    assert "safetensors" in caught.value.message


def test_gpt_neox_in_a_gguf_file_is_refused(tiny: Tiny, tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    write_layer_norm_gguf(tiny("gpt_neox"), path)
    with pytest.raises(NotBuiltError, match="GGUF files of architecture 'gptneox' are not built"):
        load_model(inspect(str(path)), torch.float32)
