"""Mixtures of experts in a Hugging Face config."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headway.layers.moe import Routing
from headway.models.hf_fields import bad_field, count

# In all layers together. The largest published models have some 25,000.
_MOST_EXPERTS: Final = 1 << 17


def routing(
    config: Mapping[str, Any], names: tuple[str, ...], *, layers: int, experts: int, chosen: int, renormalized: bool
) -> Routing:
    """`names` of the number of experts in a layer, the first that is there counts; `experts` and `chosen` are defaults.

    Raises ArtifactError (`invalid_model_config`).
    """
    name = next((name for name in names if config.get(name) is not None), names[0])
    found = Routing(count(config, name, experts), count(config, "num_experts_per_tok", chosen), renormalized)
    if found.experts * layers > _MOST_EXPERTS:
        raise bad_field(name, f"at most {_MOST_EXPERTS // layers} for {layers} layers", found.experts)
    if found.chosen > found.experts:
        raise bad_field("num_experts_per_tok", f"at most {name} ({found.experts})", found.chosen)
    return found


def sparse_layers(config: Mapping[str, Any], layers: int) -> tuple[bool, ...]:
    """Every `decoder_sparse_step`-th layer has experts, except those of `mlp_only_layers` (Qwen)."""
    step = count(config, "decoder_sparse_step", 1)
    dense = config.get("mlp_only_layers") or []
    if not isinstance(dense, list) or not all(type(layer) is int for layer in dense):
        raise bad_field("mlp_only_layers", "a list of layer numbers", dense)
    return tuple((layer + 1) % step == 0 and layer not in dense for layer in range(layers))
