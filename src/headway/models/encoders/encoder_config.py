"""EncoderConfig: what a bidirectional encoder is, in our words."""

from __future__ import annotations

from dataclasses import dataclass

from headway.kernels.interface import Activation
from headway.layers.disentangled_attention import Disentangled
from headway.layers.rope_frequencies import RopeSpec


@dataclass(frozen=True, slots=True)
class Convolution:
    """`tokens` that it reads for each of its outputs, in `groups` of channels. `activation` None is tanh."""

    tokens: int
    groups: int
    activation: Activation | None

    def dims(self, hidden: int) -> dict[str, int]:
        """More names that weight tables use for sizes."""
        return {"conv_in": hidden // self.groups, "conv_tokens": self.tokens}


@dataclass(frozen=True, slots=True)
class EncoderConfig:
    """Sizes and switches of one encoder. Tuples named `layer_*` have one entry per layer."""

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_heads: int
    max_positions: int  # the most tokens in a row
    norm_epsilon: float
    activation: Activation
    pre_norms: bool = False  # normalise what attention and feed-forward read, and the last hidden states; else what they return
    gated_mlp: bool = False
    qkv_bias: bool = True
    output_bias: bool = True
    mlp_bias: bool = True
    norm_bias: bool = True
    position_rows: int = 0  # rows of the table of learned positions; 0 = none
    position_offset: int = 0  # the row of a first token
    segment_rows: int = 0  # rows of the table of token types; 0 = none
    embedding_size: int | None = None  # of a token, where it is projected to the hidden size
    ropes: tuple[RopeSpec, ...] = ()
    layer_ropes: tuple[int | None, ...] = ()  # index into ropes; empty = no layer rotates
    layer_reaches: tuple[int | None, ...] = ()  # tokens a layer sees to either side; None = all, empty = all in every layer
    buckets: int = 0  # rows of the table of biases by distance (MPNet); 0 = none
    farthest_bucket: int = 128  # the distance from which on all are in the last one
    disentangled: Disentangled | None = None  # DeBERTa
    convolution: Convolution | None = None  # beside the first layer

    @property
    def head_dim(self) -> int:
        return self.hidden_size // self.num_heads

    @property
    def num_kv_heads(self) -> int:
        return self.num_heads

    @property
    def wide_norms(self) -> bool:
        """Norm weights are float32 and multiplied before rounding."""
        return True

    @property
    def layer_sparse(self) -> tuple[bool, ...]:
        return (False,) * self.num_layers

    @property
    def factorized(self) -> bool:
        return self.embedding_size is not None

    @property
    def own_position_keys(self) -> bool:
        """Distances have a projection of their own to keys, and below to queries."""
        return self.disentangled is not None and self.disentangled.content_to_position and not self.disentangled.shared

    @property
    def own_position_queries(self) -> bool:
        return self.disentangled is not None and self.disentangled.position_to_content and not self.disentangled.shared

    @property
    def normalized_distances(self) -> bool:
        return self.disentangled is not None and self.disentangled.normalized

    @property
    def dims(self) -> dict[str, int]:
        """Names that weight tables use for sizes."""
        hidden = self.hidden_size
        return {
            "vocab": self.vocab_size, "embedding": self.embedding_size or hidden, "hidden": hidden, "ffn": self.intermediate_size,
            "gate_up": 2 * self.intermediate_size, "qkv": 3 * hidden, "positions": self.position_rows, "segments": self.segment_rows,
            "heads": self.num_heads, "buckets": self.buckets,
            "distances": 0 if self.disentangled is None else 2 * self.disentangled.span,
        } | ({} if self.convolution is None else self.convolution.dims(hidden))  # fmt: skip
