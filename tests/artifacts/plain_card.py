"""A card with a configuration and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headway.artifacts.card import ModelCard
from headway.artifacts.config_overrides import with_config


def plain_card(config: Mapping[str, Any]) -> ModelCard:
    empty = ModelCard(
        reference="plain", path=Path("plain"), format="safetensors", architecture="", model_type="", config={}, generation_config={},
        tensors={}, files=(), missing_files=(), parameters=0, weight_bytes=0, dtype_bytes={}, quantization=None, tokenizer=None,
        chat_template=False, licence=None, context_length=None,
    )  # fmt: skip
    return with_config(empty, config)
