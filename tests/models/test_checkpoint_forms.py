"""The same weights in other files: in shards, under older names, with heads and masks that were stored needlessly."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from headway.artifacts.inspect import inspect
from headway.models.load import load_model
from tests.models.runs import in_chunks
from tests.models.tiny_models import TinyModel

Tiny = Callable[[str], TinyModel]
TEXT = torch.randint(3, 160, (40,), generator=torch.Generator().manual_seed(0)).tolist()


def logits(folder: Path) -> torch.Tensor:
    return in_chunks(load_model(inspect(str(folder)), torch.float32), TEXT, 20)


def rewritten(model: TinyModel, folder: Path, rename: Callable[[str], str], extra: dict[str, torch.Tensor]) -> Path:
    """The model's folder with other names of tensors, and more tensors."""
    folder.mkdir()
    (folder / "config.json").write_text((model.folder / "config.json").read_text())
    tensors = load_file(model.folder / "model.safetensors")
    save_file({rename(name): tensor for name, tensor in tensors.items()} | extra, folder / "model.safetensors")
    return folder


@pytest.mark.parametrize("name", ["llama", "starcoder2", "stablelm", "gpt_neox", "gpt2", "falcon_40b"])
def test_shards_load_identically(tiny: Tiny, name: str, tmp_path: Path) -> None:
    model = tiny(name)
    model.oracle.save_pretrained(tmp_path, max_shard_size="30KB")
    shards = list(tmp_path.glob("model-*.safetensors"))
    assert len(shards) > 3
    placed = json.loads((tmp_path / "model.safetensors.index.json").read_text())["weight_map"]
    assert set(placed.values()) == {shard.name for shard in shards}
    assert torch.equal(logits(tmp_path), logits(model.folder))


def test_gpt2_as_it_was_saved_without_its_head(tiny: Tiny, tmp_path: Path) -> None:
    model = tiny("gpt2")
    masks = {f"h.{i}.attn.bias": torch.ones(1, 1, 256, 256).tril() for i in range(3)}
    folder = rewritten(model, tmp_path / "old", lambda name: name.removeprefix("transformer."), masks)
    assert torch.equal(logits(folder), logits(model.folder))


def test_gpt_neox_with_the_name_of_the_head_that_others_use(tiny: Tiny, tmp_path: Path) -> None:
    model = tiny("gpt_neox")
    masks = {f"gpt_neox.layers.{i}.attention.bias": torch.ones(1, 1, 256, 256).tril() for i in range(3)}
    tables = {f"gpt_neox.layers.{i}.attention.rotary_emb.inv_freq": torch.ones(2) for i in range(3)}
    folder = rewritten(model, tmp_path / "new", lambda name: name.replace("embed_out", "lm_head"), masks | tables)
    assert torch.equal(logits(folder), logits(model.folder))


@pytest.mark.parametrize(
    ("name", "embedding", "head"),
    [
        ("starcoder2", "model.embed_tokens.weight", "lm_head.weight"),
        ("gpt2", "transformer.wte.weight", "lm_head.weight"),
        ("falcon_7b", "transformer.word_embeddings.weight", "lm_head.weight"),
        ("stablelm_2", "model.embed_tokens.weight", "lm_head.weight"),
        ("gpt_neox_sequential", "gpt_neox.embed_in.weight", "embed_out.weight"),
    ],
)
def test_tied_models_that_ship_their_head(tiny: Tiny, name: str, embedding: str, head: str, tmp_path: Path) -> None:
    model = tiny(name)
    tied = load_file(model.folder / "model.safetensors")
    assert head not in tied
    folder = rewritten(model, tmp_path / "both", lambda name: name, {head: tied[embedding].clone()})
    assert torch.equal(logits(folder), logits(model.folder))
