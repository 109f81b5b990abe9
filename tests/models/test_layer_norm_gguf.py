"""GGUF files of StarCoder 2, StableLM, GPT-2 and Falcon: the file alone is enough."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from headway.artifacts.inspect import inspect
from headway.errors import NotBuiltError
from headway.models.load import load_model
from tests.models.gguf_oracle import gguf_oracle
from tests.models.runs import in_chunks
from tests.models.tiny_layer_norm_gguf import write_layer_norm_gguf
from tests.models.tiny_models import TinyModel

Tiny = Callable[[str], TinyModel]
TEXT = torch.randint(3, 160, (60,), generator=torch.Generator().manual_seed(0)).tolist()
# transformers' own reader knows neither StableLM's norms of heads nor Falcon with several key heads.
READ_BY_TRANSFORMERS = ["starcoder2_full", "stablelm_2", "gpt2", "falcon_7b"]


@pytest.mark.parametrize("name", [*READ_BY_TRANSFORMERS, "stablelm_12b", "falcon_40b", "falcon_11b"])
def test_logits_of_a_gguf_file(tiny: Tiny, name: str, tmp_path: Path) -> None:
    model = tiny(name)
    path = tmp_path / "m.gguf"
    write_layer_norm_gguf(model, path)
    ours = in_chunks(load_model(inspect(str(path)), torch.float32), TEXT, 25)
    assert (ours - model.logits(TEXT)).abs().max() <= 1e-4
    if name in READ_BY_TRANSFORMERS:
        with torch.no_grad():
            theirs = gguf_oracle(path)(torch.tensor([TEXT])).logits[0]
        assert (ours - theirs).abs().max() <= 1e-4


def test_gpt_neox_in_a_gguf_file_is_refused(tiny: Tiny, tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    write_layer_norm_gguf(tiny("gpt_neox"), path)
    with pytest.raises(NotBuiltError, match="GGUF files of architecture 'gptneox' are not built"):
        load_model(inspect(str(path)), torch.float32)
