"""Which layers of a Qwen model attend over a window."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headway.models.hf_fields import count, flag, layer_types, optional_count


def qwen_windows(config: Mapping[str, Any], layers: int) -> tuple[int | None, ...]:
    """Layers from max_window_layers on, if use_sliding_window says so; `layer_types` wins where it is given."""
    window = optional_count(config, "sliding_window", 4_096) if flag(config, "use_sliding_window") else None
    if window is None:
        return (None,) * layers
    first = 0 if config.get("max_window_layers") == 0 else count(config, "max_window_layers", 28)
    default = ["sliding_attention" if i >= first else "full_attention" for i in range(layers)]
    return tuple(window if kind == "sliding_attention" else None for kind in layer_types(config, default))
