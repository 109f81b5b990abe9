"""A tiny model's folder made complete: with a tokenizer of bytes, so that an engine can load it."""

from __future__ import annotations

from pathlib import Path

from tokenizers import AddedToken, decoders, models, pre_tokenizers
from tokenizers import Tokenizer as Backend

from tests.models.tiny_models import SIZES, TinyModel, tiny_model


def complete_tiny_model(name: str, root: Path) -> TinyModel:
    model = tiny_model(name, root)
    write_byte_tokenizer(model.folder)
    return model


def write_byte_tokenizer(folder: Path) -> None:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())[: SIZES["vocab_size"] - 3]
    backend = Backend(models.BPE({t: i for i, t in enumerate(["<pad>", "<s>", "</s>", *alphabet])}, []))
    backend.pre_tokenizer, backend.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    backend.add_special_tokens([AddedToken(t, special=True) for t in ("<pad>", "<s>", "</s>")])
    backend.save(str(folder / "tokenizer.json"))
