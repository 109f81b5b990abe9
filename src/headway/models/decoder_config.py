"""DecoderConfig: what a decoder-only model is, in our words, whatever file it came from."""

from __future__ import annotations

from dataclasses import dataclass

from headway.kernels.interface import Activation
from headway.kernels.paged_kv import KVShape
from headway.layers.moe import Routing
from headway.layers.norms import NormKind, QkNorm
from headway.layers.rope_frequencies import RopeSpec


@dataclass(frozen=True, slots=True)
class Experts:
    """The feed-forward layers that are mixtures of experts: `sparse` has one entry per layer."""

    routing: Routing
    intermediate_size: int
    sparse: tuple[bool, ...]

    @property
    def dims(self) -> dict[str, int]:
        """More names that weight tables use for sizes."""
        size = self.intermediate_size
        return {"experts": self.routing.experts, "expert_ffn": size, "expert_gate_up": 2 * size}


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
    layer_ropes: tuple[int | None, ...]  # index into ropes; None = the layer does not rotate
    layer_windows: tuple[int | None, ...]  # positions a token sees, itself included; None = all
    tie_word_embeddings: bool
    norm: NormKind = "rms"
    gated_mlp: bool = True
    parallel_residual: bool = False  # attention and feed-forward read the same residual stream
    mlp_norm: bool = True  # False, in parallel layers: the feed-forward reads what attention reads
    alibi: bool = False  # scores fall with the distance of the key; in all layers, and without windows
    learned_positions: bool = False  # a row for each of max_position_embeddings, added to the embedding
    qkv_bias: bool = False
    output_bias: bool = False  # of the attention's output projection
    mlp_bias: bool = False
    qk_norm: QkNorm | None = None
    attention_softcap: float | None = None
    pre_norms: bool = True  # normalise what attention and feed-forward read
    post_norms: bool = False  # also normalise what attention and feed-forward return, before it is added
    wide_norms: bool = False  # norm weights are float32 and multiplied before rounding
    residual_scale: float | None = None  # multiplies what attention and feed-forward add
    embedding_scale: float | None = None
    embedding_scale_rounded: bool = False  # to the dtype of the model, before it multiplies
    logit_softcap: float | None = None
    logit_divisor: float | None = None
    experts: Experts | None = None

    @property
    def kv_shape(self) -> KVShape:
        """What PagedKV needs to know."""
        return KVShape(self.num_layers, self.num_kv_heads, self.head_dim)

    @property
    def windows(self) -> frozenset[int | None]:
        """The distinct windows."""
        return frozenset(self.layer_windows)

    @property
    def layer_sparse(self) -> tuple[bool, ...]:
        """Whether a layer's feed-forward part is a mixture of experts."""
        return (False,) * self.num_layers if self.experts is None else self.experts.sparse

    @property
    def dims(self) -> dict[str, int]:
        """Names that weight tables use for sizes."""
        return {
            "vocab": self.vocab_size, "hidden": self.hidden_size, "ffn": self.intermediate_size, "head": self.head_dim,
            "q": self.num_heads * self.head_dim, "kv": self.num_kv_heads * self.head_dim,
            "qkv": (self.num_heads + 2 * self.num_kv_heads) * self.head_dim, "positions": self.max_position_embeddings,
            "heads": self.num_heads, "kv_heads": self.num_kv_heads, "gate_up": 2 * self.intermediate_size,
        } | ({} if self.experts is None else self.experts.dims)  # fmt: skip
