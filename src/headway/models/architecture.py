"""What an architecture module declares."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from headway.models.decoder_config import DecoderConfig
from headway.models.weight_rules import WeightRule


@dataclass(frozen=True, slots=True)
class Architecture:
    """`configure` reads a Hugging Face config; the tables are for the two kinds of files."""

    name: str
    configure: Callable[[Mapping[str, Any]], DecoderConfig]
    safetensors: tuple[WeightRule, ...]
    gguf: tuple[WeightRule, ...]
