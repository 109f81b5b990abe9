"""A model folder of which only the configuration matters, for runs with random weights."""

from __future__ import annotations

from pathlib import Path

from headway.artifacts.bounded_json import read_json_object, read_json_object_if_present
from headway.artifacts.card import ModelCard
from headway.artifacts.config_overrides import with_config
from headway.artifacts.folder_contents import has_chat_template, tokenizer_files


def config_only_card(folder: Path, reference: str) -> ModelCard:
    """A card without tensors. Raises ArtifactError (`missing_file` and other reasons of `read_json_object`)."""
    config = read_json_object(folder / "config.json")
    empty = ModelCard(
        reference=reference, path=folder, format="safetensors", architecture="", model_type="", config={},
        generation_config=read_json_object_if_present(folder / "generation_config.json"), tensors={}, files=(), missing_files=(),
        parameters=0, weight_bytes=0, dtype_bytes={}, quantization=None, tokenizer=tokenizer_files(folder),
        chat_template=has_chat_template(folder), licence=None, context_length=None,
    )  # fmt: skip
    return with_config(empty, config)
