"""GGUF files of the architectures: names, permuted rows, norms that are stored with one added."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import gguf
import pytest
import torch
from transformers import Phi3Config, PreTrainedConfig, Qwen3Config, Qwen3MoeConfig
from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

from headway.artifacts.inspect import inspect
from headway.models.load import load_model
from tests.models.runs import in_chunks
from tests.models.tiny_gguf import ARCHITECTURES, write_gguf
from tests.models.tiny_models import TinyModel, make_tiny_model
from tests.models.tiny_sizes import SERVED, SIZES

pytestmark = pytest.mark.usefixtures("unrounded")


@pytest.mark.parametrize("name", list(ARCHITECTURES))
def test_logits_of_a_gguf_file(tiny: Callable[[str], TinyModel], name: str, tmp_path: Path) -> None:
    model = tiny(name)
    path = tmp_path / "m.gguf"
    write_gguf(model, path)
    card = inspect(str(path))
    # Settings that the writer left out are not what is tested here: they come from the original config.
    original = {**model.oracle.config.to_dict(), "architectures": card.config["architectures"]}
    loaded = load_model(replace(card, config=original), torch.float32, context_length=SERVED)
    text = torch.randint(3, 160, (60,), generator=torch.Generator().manual_seed(0)).tolist()
    assert (in_chunks(loaded, text, 60) - model.logits(text)).abs().max() <= 1e-4


@pytest.mark.parametrize("name", ["gemma2_head_scale", "phi3", "qwen3_moe"])
def test_a_file_alone_is_enough(tiny: Callable[[str], TinyModel], name: str, tmp_path: Path) -> None:
    """Settings from the metadata, too. transformers, reading the same file, finds the weights that we wrote."""
    model = tiny(name)
    path = tmp_path / "m.gguf"
    write_gguf(model, path)
    theirs = load_gguf_checkpoint(str(path), return_tensors=True, model_to_load=model.oracle)["tensors"]
    weights = {key: value for key, value in model.oracle.state_dict().items() if key in theirs}
    assert set(model.oracle.state_dict()) - set(theirs) <= {"lm_head.weight"}
    assert all(torch.allclose(theirs[key], value, atol=1e-6) for key, value in weights.items())
    loaded = load_model(inspect(str(path)), torch.float32, context_length=SERVED)
    text = torch.randint(3, 160, (100,), generator=torch.Generator().manual_seed(0)).tolist()
    assert (in_chunks(loaded, text, 60) - model.logits(text)).abs().max() <= 1e-4


def test_a_window_of_zero_is_none(tmp_path: Path) -> None:
    model = make_tiny_model("phi3", Phi3Config(**SIZES, num_hidden_layers=2, sliding_window=None), tmp_path)
    path = tmp_path / "m.gguf"
    write_gguf(model, path)
    text = torch.randint(3, 160, (100,), generator=torch.Generator().manual_seed(0)).tolist()
    ours = in_chunks(load_model(inspect(str(path)), torch.float32, context_length=SERVED), text, 60)
    assert (ours - model.logits(text)).abs().max() <= 1e-4


_SIZES = SIZES | {"intermediate_size": 128}
_MIXTURE = Qwen3MoeConfig(
    **_SIZES, num_hidden_layers=2, head_dim=32, num_experts=8, num_experts_per_tok=3, moe_intermediate_size=64, norm_topk_prob=True
)


@pytest.mark.parametrize("stored", ["F16", "Q8_0", "Q4_0", "Q5_1"])
@pytest.mark.parametrize("config", [_MIXTURE, Qwen3Config(**_SIZES, num_hidden_layers=2, head_dim=32)], ids=["qwen3_moe", "qwen3"])
def test_quantized_experts_are_cut_out_of_the_tensor_that_holds_all_of_them(config: PreTrainedConfig, stored: str, tmp_path: Path) -> None:
    model = make_tiny_model(config.model_type, config, tmp_path)
    path = tmp_path / "m.gguf"
    write_gguf(model, path, gguf.GGMLQuantizationType[stored])
    theirs = load_gguf_checkpoint(str(path), return_tensors=True, model_to_load=model.oracle)["tensors"]
    model.oracle.load_state_dict(theirs)
    text = torch.randint(3, 160, (60,), generator=torch.Generator().manual_seed(0)).tolist()
    ours = in_chunks(load_model(inspect(str(path)), torch.float32, context_length=SERVED), text, 60)
    assert (ours - model.logits(text)).abs().max() <= 1e-4
