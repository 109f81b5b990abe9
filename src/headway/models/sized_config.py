"""SizedConfig: what weight tables, their transforms and `fill` ask of a model's configuration."""

from __future__ import annotations

from typing import Protocol


class SizedConfig(Protocol):
    """DecoderConfig, EncoderConfig. Weight rules also look up the switches that they name."""

    @property
    def num_heads(self) -> int: ...

    @property
    def num_kv_heads(self) -> int: ...

    @property
    def head_dim(self) -> int: ...

    @property
    def wide_norms(self) -> bool:
        """Norm weights stay float32."""
        ...

    @property
    def layer_sparse(self) -> tuple[bool, ...]:
        """One entry per layer: whether its feed-forward part is a mixture of experts."""
        ...

    @property
    def dims(self) -> dict[str, int]:
        """Names that weight tables use for sizes."""
        ...
