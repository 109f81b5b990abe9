"""ModelShape: the numbers of a model that memory and speed depend on, whatever source they come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from headway.capacity.weight_bytes import NO_INTEGERS, IntegerShare

Kind = Literal["decoder", "encoder", "table"]


@dataclass(frozen=True, slots=True)
class KvLayers:
    """`count` layers that keep the same per token: `heads` key heads, each `numbers` numbers (key and value together).

    `window` is how many positions a layer looks back, itself included, None = all. `heads` is 0 where the heads share one
    latent vector (MLA), which every rank keeps whole; then `numbers` is its width.
    """

    count: int
    heads: int
    numbers: int
    window: int | None = None

    def numbers_per_token(self, ranks: int = 1) -> int:
        """Of all these layers on one of `ranks` devices: key heads are divided, and repeated when there are fewer than ranks."""
        return self.count * self.numbers * (-(-self.heads // ranks) if self.heads else 1)


@dataclass(frozen=True, slots=True)
class ModelShape:
    """Counts are numbers of parameters. `embeddings` are the input tables, `head` the output matrix (0 when it is the
    embedding), `active` what one token is multiplied with: all but input tables and the experts that are not chosen.

    `state_numbers` are kept once per sequence (state-space and linear attention layers). `stored_bytes` is None when there are
    no weight files; `quantization` is the method of a checkpoint that is quantized, `integers` what of it Headway's engine on this machine
    does not unpack.
    """

    name: str
    kind: Kind
    parameters: int
    embeddings: int
    head: int
    active: int
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocabulary: int
    context_length: int | None
    kv: tuple[KvLayers, ...] = ()
    state_numbers: int = 0
    quantization: str | None = None
    stored_bytes: int | None = None
    stored_types: Mapping[str, int] = field(default_factory=dict)
    architecture: str = ""
    notes: tuple[str, ...] = ()
    integers: IntegerShare = NO_INTEGERS

    @property
    def quantizable(self) -> int:
        """Parameters of the linear layers, which quantization formats pack; tables and head stay as they are."""
        return self.parameters - self.embeddings - self.head

    @property
    def tied(self) -> bool:
        """The embedding is the output matrix as well."""
        return self.kind == "decoder" and self.head == 0

    def cache_numbers(self, tokens: int, ranks: int = 1, *, windows: bool = True) -> int:
        """Numbers that one sequence of `tokens` keeps on one of `ranks` devices. Without `windows` every layer keeps all."""
        kept = sum(
            layer.numbers_per_token(ranks) * (min(tokens, layer.window) if windows and layer.window else tokens)
            for layer in self.kv
        )
        return kept + -(-self.state_numbers // ranks)

    def numbers_per_token(self, ranks: int = 1) -> int:
        """What one more token adds while no window is full."""
        return sum(layer.numbers_per_token(ranks) for layer in self.kv)
