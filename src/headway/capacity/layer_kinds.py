"""What each layer of a decoder mixes tokens with: attention to all, to a window, or a state of fixed size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from headway.capacity.config_fields import ConfigFields

LayerKind = Literal["full", "window", "state", "none"]

# Words of `layer_types` in configurations.
_WORDS: Final[Mapping[str, LayerKind]] = {
    "full_attention": "full", "attention": "full", "sliding_attention": "window", "chunked_attention": "window",
    "linear_attention": "state", "mamba": "state", "mamba2": "state", "recurrent": "state", "conv": "state", "hybrid": "full",
    "moe": "none", "mlp": "none",
}  # fmt: skip
# Letters of `hybrid_override_pattern` (Nemotron-H): M state, * attention, - and E feed-forward.
_LETTERS: Final[Mapping[str, LayerKind]] = {"M": "state", "*": "full", "-": "none", "E": "none"}
# Models whose layers all have the window that the configuration states.
_ALL_WINDOWED: Final = frozenset({"mistral", "mixtral", "starcoder2", "phi3", "phimoe"})
# Models that alternate, the first one windowed, when no list says so: full attention in every n-th layer.
_ALTERNATING: Final[Mapping[str, int]] = {"gemma2": 2, "gemma3_text": 6, "gemma3": 6, "cohere2": 4, "gpt_oss": 2}


def layer_kinds(config: ConfigFields, layers: int) -> list[LayerKind]:
    """One entry per layer. What is not known to be anything else attends to all."""
    words = config.texts("layer_types") or config.texts("layers_block_type")
    if len(words) == layers:
        return [_WORDS.get(word, "full") for word in words]
    pattern = config.fields.get("hybrid_override_pattern")
    if isinstance(pattern, str) and len(pattern) == layers:
        return [_LETTERS.get(letter, "full") for letter in pattern]
    if (period := config.number("attn_layer_period")) is not None:  # Jamba
        offset = config.number("attn_layer_offset") or 0
        return ["full" if index % period == offset else "state" for index in range(layers)]
    if "attn_layer_indices" in config.fields:  # Bamba
        indices = config.fields["attn_layer_indices"]
        return ["full" if isinstance(indices, list) and index in indices else "state" for index in range(layers)]
    if config.model_type in ("mamba", "mamba2", "falcon_mamba"):
        return ["state"] * layers
    if (interval := config.number("full_attention_interval")) is not None:  # Qwen3-Next
        return ["full" if (index + 1) % interval == 0 else "state" for index in range(layers)]
    if window_size(config) is None:
        return ["full"] * layers
    if (every := config.number("sliding_window_pattern") or _ALTERNATING.get(config.model_type)) is not None:
        return ["full" if (index + 1) % every == 0 else "window" for index in range(layers)]
    if config.flag("use_sliding_window"):  # Qwen2 and its kin: the first max_window_layers attend to all
        first = config.number("max_window_layers") or 0
        return ["full" if index < first else "window" for index in range(layers)]
    return ["window" if config.model_type in _ALL_WINDOWED else "full"] * layers


def window_size(config: ConfigFields) -> int | None:
    """Positions that a windowed layer sees, None when no layer is windowed."""
    if config.fields.get("use_sliding_window") is False:
        return None
    return config.number("sliding_window", "attention_chunk_size")
