"""DecoderConfig: what a decoder-only model is, in our words, whatever file it came from."""

from __future__ import annotations

from dataclasses import dataclass

from headway.kernels.paged_kv import KVShape
from headway.layers.gated_mlp import Activation
from headway.layers.rope_frequencies import RopeSpec


@dataclass(frozen=True, slots=True)
class DecoderConfig:
    """Sizes and switches of one decoder. Tuples named `layer_*` have one entry per layer."""

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    max_position_embeddings: int
    norm_epsilon: float
    activation: Activation
    attention_scale: float
    ropes: tuple[RopeSpec, ...]
    layer_ropes: tuple[int, ...]  # index into ropes
    layer_windows: tuple[int | None, ...]  # positions a token sees, itself included; None = all
    tie_word_embeddings: bool
    qkv_bias: bool = False
    output_bias: bool = False  # of the attention's output projection
    mlp_bias: bool = False
    qk_norm: bool = False
    post_norms: bool = False  # also normalise what attention and feed-forward return, before it is added
    wide_norms: bool = False  # norm weights are float32 and multiplied before rounding
    embedding_scale: float | None = None
    logit_softcap: float | None = None

    @property
    def kv_shape(self) -> KVShape:
        """What PagedKV needs to know."""
        return KVShape(self.num_layers, self.num_kv_heads, self.head_dim)

    @property
    def windows(self) -> frozenset[int | None]:
        """The distinct windows."""
        return frozenset(self.layer_windows)

    @property
    def dims(self) -> dict[str, int]:
        """Names that weight tables use for sizes."""
        return {
            "vocab": self.vocab_size, "hidden": self.hidden_size, "ffn": self.intermediate_size, "head": self.head_dim,
            "q": self.num_heads * self.head_dim, "kv": self.num_kv_heads * self.head_dim,
        }  # fmt: skip
