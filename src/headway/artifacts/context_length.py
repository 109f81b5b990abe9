"""How many positions a configuration gives a model, RoPE scaling included."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

# The names different configuration classes give the same number.
CONTEXT_FIELDS: Final = (
    "max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "seq_length", "max_sequence_length", "max_seq_length", "seq_len",
)  # fmt: skip
# Types whose max_position_embeddings already is the extended length, and models that state it so whatever the type.
_ALREADY_EXTENDED: Final = frozenset({"default", "llama3", "longrope", "su", "mrope", "proportional"})
_MODELS_ALREADY_EXTENDED: Final = frozenset({"gemma3", "gemma3_text"})
# Models whose files leave it out, and what transformers then takes.
_UNSTATED: Final[Mapping[str, int]] = {"falcon": 2_048}


def text_config(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The section that describes the language model: `text_config` of composite models, else the whole."""
    section = config.get("text_config")
    return section if isinstance(section, Mapping) and "num_hidden_layers" in section else config


def context_length(config: Mapping[str, Any]) -> int | None:
    """Tokens of context, or None when it is not known. Linear, dynamic and YaRN scaling multiply it."""
    config = text_config(config)
    stated = [value for field in CONTEXT_FIELDS if type(value := config.get(field)) is int and value > 0]
    if not stated:
        return _UNSTATED.get(str(config.get("model_type")))
    length = min(stated)
    scaling = config.get("rope_scaling") or config.get("rope_parameters")
    if not isinstance(scaling, Mapping) or str(config.get("model_type")) in _MODELS_ALREADY_EXTENDED:
        return length
    kind = str(scaling.get("rope_type", scaling.get("type", "default")))
    factor = scaling.get("factor")
    if kind in _ALREADY_EXTENDED or not isinstance(factor, int | float) or not 1 <= factor <= 1_000_000:
        return length
    original = scaling.get("original_max_position_embeddings")
    if kind == "yarn" and type(original) is int and original > 0:
        length = original
    return int(length * factor)
