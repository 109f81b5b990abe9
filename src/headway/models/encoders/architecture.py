"""What a module of an encoder architecture declares."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from headway.models.encoders.encoder_config import EncoderConfig
from headway.models.weight_rules import Table


@dataclass(frozen=True, slots=True)
class EncoderArchitecture:
    """`model_types` are the names in config.json for which it stands. `configure` reads a Hugging Face config. `table` names
    the tensors as the bare model is saved, without the prefix that models with a head put before them; the first one is the
    embedding of the tokens. `unused` are tensors that some checkpoints have and no model reads."""

    model_types: tuple[str, ...]
    configure: Callable[[Mapping[str, Any]], EncoderConfig]
    table: Table
    unused: tuple[str, ...] = ()
