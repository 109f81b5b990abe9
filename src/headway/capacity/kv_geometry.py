"""Bytes that keys and values take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

from headway.artifacts.context_length import text_config
from headway.errors import CapacityError


@dataclass(frozen=True, slots=True)
class KvGeometry:
    """`layers` that keep keys and values, each `kv_heads` vectors of `head_dim` per token for keys and again for values. `scale_bytes`
    are kept beside each vector: 4 where it is quantized."""

    layers: int
    kv_heads: int
    head_dim: int
    scale_bytes: int = 0

    def bytes_per_token(self, dtype_bytes: int) -> int:
        """2 x layers x kv_heads x (head_dim x dtype_bytes + scale_bytes): one key and one value vector per head and layer."""
        return 2 * self.layers * self.kv_heads * (self.head_dim * dtype_bytes + self.scale_bytes)

    def bytes_per_block(self, block_size: int, dtype_bytes: int) -> int:
        """Bytes of `block_size` tokens over all layers."""
        return block_size * self.bytes_per_token(dtype_bytes)


def kv_geometry(config: Mapping[str, Any]) -> KvGeometry:
    """Read the geometry from a configuration in Hugging Face spelling.

    Raises CapacityError (`unknown_geometry`) when the fields are missing, as in models that are not decoders.
    """
    fields = text_config(config)
    layers = fields.get("num_hidden_layers", fields.get("n_layer"))
    heads = fields.get("num_attention_heads", fields.get("n_head"))
    hidden = fields.get("hidden_size", fields.get("n_embd"))
    kv_heads = _kv_heads(fields, heads)
    head_dim = fields.get("head_dim") or (hidden // heads if _positive(hidden) and _positive(heads) else None)
    if not (_positive(layers) and _positive(kv_heads) and _positive(head_dim)):
        raise CapacityError(
            "the size of the KV cache cannot be told: num_hidden_layers, num_attention_heads, hidden_size (or head_dim)"
            f" must be positive numbers, found {layers!r}, {heads!r}, {hidden!r}",
            reason="unknown_geometry",
            fix="Name a decoder model with a complete config.json.",
        )
    return KvGeometry(layers, kv_heads, head_dim)


def _kv_heads(fields: Mapping[str, Any], heads: Any) -> Any:
    """A field that is there and null means the default, in files of some models."""
    if fields.get("model_type") != "falcon":
        return fields.get("num_key_value_heads") or heads
    if fields.get("new_decoder_architecture"):
        return fields.get("num_kv_heads") or heads
    # Falcon 7B has one, whatever its num_kv_heads says.
    return heads if fields.get("multi_query") is False else 1


def _positive(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
