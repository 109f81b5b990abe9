"""Which class of transformers runs a model, or why none does: from the config alone, before anything is built."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from headway.artifacts.card import ModelCard
from headway.artifacts.quantization_claim import QUANTIZATION_FIELDS
from headway.errors import ArtifactError
from headway.models.fallback.refusal import first_line, refusal

# Kinds of layers (`layer_types` and its like) that keep a state of their own beside keys and values.
_STATE_LAYERS: Final = ("linear", "mamba", "conv", "recurrent", "rwkv", "ssm", "delta", "lightning")
_KIND_FIELDS: Final = ("layer_types", "layers_block_type", "block_types")


@dataclass(frozen=True, slots=True)
class FallbackClass:
    """A class of transformers and the config for it."""

    architecture: str
    model_class: Any
    config: Any


def fallback_class(card: ModelCard) -> FallbackClass:
    """Raises ArtifactError (`unsupported_architecture`, `remote_code`, `invalid_model_config`) with the reason."""
    import transformers  # seconds; models that run natively never need it

    name = card.architecture
    if name not in _causal_names(transformers):
        raise _unknown(name, card.config, transformers)
    model_class = getattr(transformers, name)
    _check_class(name, model_class)
    config = transformers_config(card)
    _check_config(name, config)
    return FallbackClass(name, model_class, config)


def _causal_names(transformers: Any) -> frozenset[str]:
    entries = transformers.models.auto.modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values()
    return frozenset(name for entry in entries for name in (entry if isinstance(entry, tuple | list) else (entry,)))


def _unknown(name: str, config: Mapping[str, Any], transformers: Any) -> ArtifactError:
    version = transformers.__version__
    if name.isidentifier() and hasattr(transformers, name):
        return refusal(name, "it is no causal language model (a decoder that continues text)")
    if config.get("auto_map"):
        return refusal(
            name, f"it needs Python code of the model repository (auto_map), which is never run, and transformers {version} has no class for it",
            "Use a checkpoint that needs no code; a newer transformers may know the architecture.", reason="remote_code",
        )  # fmt: skip
    near = difflib.get_close_matches(name, _causal_names(transformers), n=1)
    return refusal(
        name, f"neither Headway nor the installed transformers {version} knows it" + (f"; the nearest is {near[0]}" if near else ""),
        "A newer transformers may know it; else choose a model of another architecture (docs/models.md).",
    )  # fmt: skip


def transformers_config(card: ModelCard) -> Any:
    """The config of the class that transformers has for the card's `model_type`, without the quantization section: what is packed is
    unpacked here, and transformers gets plain weights. Raises ArtifactError (`invalid_model_config`,
    `remote_code`, `unsupported_architecture`)."""
    import transformers

    if card.model_type not in transformers.CONFIG_MAPPING:
        raise _unknown(card.architecture or card.model_type, card.config, transformers)
    try:
        plain = {key: value for key, value in card.config.items() if key not in QUANTIZATION_FIELDS}
        return transformers.CONFIG_MAPPING[card.model_type].from_dict(plain)
    except Exception as error:  # checks of many authors: anything may be raised
        raise ArtifactError(
            f"config.json is not what transformers {transformers.__version__} expects of model_type {card.model_type!r:.60}: {first_line(error)}",
            reason="invalid_model_config", param="config.json", fix="Check config.json against the model's original.",
        ) from error  # fmt: skip


def _check_class(name: str, model_class: Any) -> None:
    if getattr(model_class, "_is_stateful", False):
        raise refusal(name, "it keeps a recurrent state beside keys and values")
    if not getattr(model_class, "_supports_attention_backend", False):
        raise refusal(name, "its code in transformers does not let its attention be exchanged")
    if "position_ids" not in inspect.signature(model_class.forward).parameters:
        raise refusal(name, "it takes no positions from outside, so sequences cannot be computed side by side")


def _check_config(name: str, config: Any) -> None:
    if getattr(config, "is_encoder_decoder", False):
        raise refusal(name, "it is an encoder-decoder model, and requests have no input for an encoder")
    state = next((kind for kind in _layer_kinds(config) if any(word in kind.lower() for word in _STATE_LAYERS)), None)
    if state is not None:
        raise refusal(name, f"it keeps a state beside keys and values (layers of kind {state!r:.40})")


def _layer_kinds(config: Any) -> list[str]:
    for field in _KIND_FIELDS:
        kinds = getattr(config, field, None)
        if isinstance(kinds, list | tuple) and all(isinstance(kind, str) for kind in kinds):
            return list(dict.fromkeys(kinds))
    return []
