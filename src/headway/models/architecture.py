"""What an architecture module declares."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from headway.models.decoder_config import DecoderConfig
from headway.models.weight_rules import Table


@dataclass(frozen=True, slots=True)
class Architecture:
    """`configure` reads a Hugging Face config; the tables are for the two kinds of files. An empty
    table: files of that kind are refused. `gguf_unconfirmed` names what a config has for which the layout of GGUF files is
    not confirmed by another reader: those files are refused, too.

    The second argument of `configure` is how many positions a sequence of this deployment may take. Rotary scalings whose
    frequencies depend on the length of a text take this one for all texts: keys in the cache must mean the same to every
    sequence that finds them.
    """

    name: str
    configure: Callable[[Mapping[str, Any], int], DecoderConfig]
    safetensors: Table
    gguf: Table
    gguf_unconfirmed: Callable[[DecoderConfig], str | None] = lambda config: None
