"""Fields of Hugging Face configs that encoders share."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from headway.kernels.interface import Activation
from headway.models.hf_fields import ACTIVATIONS, SIZE_FIELDS, activation, bad_field, sizes

_NAMES: Final = {**SIZE_FIELDS, "norm_epsilon": "layer_norm_eps"}
_TAKEN: Final = ("vocab_size", "hidden_size", "intermediate_size", "num_layers", "num_heads", "norm_epsilon")


def encoder_sizes(
    config: Mapping[str, Any], *, names: Mapping[str, str] = MappingProxyType({}), epsilon: float, activation_name: str = "hidden_act",
    activations: Mapping[str, Activation] = ACTIVATIONS,
) -> dict[str, Any]:  # fmt: skip
    """The fields of EncoderConfig that every architecture has. `names`: what this one calls those that it spells otherwise.

    Raises ArtifactError (`invalid_model_config`), NotBuiltError for other activations.
    """
    spelled = {**_NAMES, **names}
    # An encoder has as many key heads as query heads, and heads that share the hidden size evenly.
    whole = {**config, "num_key_value_heads": None, "head_dim": None}
    found = sizes(whole, names=spelled, epsilon=epsilon, defaults={"max_position_embeddings": 1})
    if found["hidden_size"] % found["num_heads"]:
        raise bad_field(spelled["num_heads"], f"a divisor of the hidden size ({found['hidden_size']})", found["num_heads"])
    return {name: found[name] for name in _TAKEN} | {"activation": activation(config, activation_name, "gelu", activations)}


def row_of_first_token(config: Mapping[str, Any], rows: int) -> int:
    """RoBERTa keeps a row of its `rows` positions for padding, and counts from the row after it."""
    padding = config.get("pad_token_id")
    padding = 1 if padding is None else padding
    if isinstance(padding, bool) or not isinstance(padding, int) or not 0 <= padding < rows - 1:
        raise bad_field("pad_token_id", f"an integer from 0 to {rows - 2}", padding)
    return padding + 1
