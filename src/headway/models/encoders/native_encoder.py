"""The encoder: embedding, layers of attention and feed-forward. All native architectures are settings of it."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress

import torch

from headway.kernels.interface import Kernels
from headway.kernels.native.row_inputs import RowInputs
from headway.kernels.packed_batch import PackedBatch
from headway.kernels.row_groups import RowGroups, group_rows
from headway.layers.disentangled_attention import DisentangledAttention
from headway.layers.distance_bias import DistanceBias
from headway.layers.embedding import Embedding
from headway.layers.encoder_embedding import EncoderEmbedding
from headway.layers.gated_mlp import GatedMLP
from headway.layers.layer_norm import LayerNorm
from headway.layers.plain_mlp import PlainMLP
from headway.layers.rotary import Rotary
from headway.layers.row_attention import RowAttention, RowStep
from headway.layers.row_convolution import RowConvolution
from headway.models.encoders.encoder import Encoded, Encoder
from headway.models.encoders.encoder_config import EncoderConfig
from headway.models.encoders.recorded_encoding import RecordedEncoding, record_encoding


class PostNormLayer:
    """Attention, then feed-forward; each is added to what it read, and the sum normalised (BERT)."""

    __slots__ = ("attention", "attention_norm", "mlp", "mlp_norm")

    def __init__(self, kernels: Kernels, config: EncoderConfig, index: int):
        self.attention = _attention(kernels, config, index)
        self.attention_norm = LayerNorm(kernels, config.norm_epsilon)
        self.mlp = (GatedMLP if config.gated_mlp else PlainMLP)(kernels, config.activation, None)
        self.mlp_norm = LayerNorm(kernels, config.norm_epsilon)

    def __call__(self, x: torch.Tensor, step: RowStep) -> torch.Tensor:
        """[T, hidden] -> [T, hidden]."""
        x = self.attention_norm(self.attention(x, x, step))
        return self.mlp_norm(self.mlp(x, x))


def _attention(kernels: Kernels, config: EncoderConfig, index: int) -> RowAttention | DisentangledAttention:
    if config.disentangled is not None:
        return DisentangledAttention(kernels, config.num_heads, config.head_dim, config.disentangled)
    return RowAttention(
        kernels, config.num_heads, config.head_dim, reach=config.layer_reaches[index] if config.layer_reaches else None,
        rope=config.layer_ropes[index] if config.layer_ropes else None,
    )  # fmt: skip


class PreNormLayer(PostNormLayer):
    """Attention, then feed-forward; each reads the normalised residual stream and is added to it. The first layer reads the
    embedding, which is normalised already (ModernBERT)."""

    __slots__ = ("_first",)

    def __init__(self, kernels: Kernels, config: EncoderConfig, index: int):
        super().__init__(kernels, config, index)
        self._first = index == 0

    def __call__(self, x: torch.Tensor, step: RowStep) -> torch.Tensor:
        """[T, hidden] -> [T, hidden]."""
        x = self.attention(x if self._first else self.attention_norm(x), x, step)
        return self.mlp(self.mlp_norm(x), x)


class NativeEncoder(Encoder):
    """Made without weights; `fill` loads the modules by their attribute paths."""

    def __init__(self, config: EncoderConfig, dtype: torch.dtype, kernels: Kernels):
        self.config = config
        self.dtype = dtype
        self.hidden_size, self.num_layers, self.max_positions = config.hidden_size, config.num_layers, config.max_positions
        self.embedding = EncoderEmbedding(
            kernels, config.norm_epsilon, positions=config.position_rows > 0, offset=config.position_offset,
            segments=config.segment_rows > 0, projected=config.factorized,
        )  # fmt: skip
        layer = PreNormLayer if config.pre_norms else PostNormLayer
        self.layers = [layer(kernels, config, i) for i in range(config.num_layers)]
        self.norm = LayerNorm(kernels, config.norm_epsilon) if config.pre_norms else None
        self.distance_bias = DistanceBias(config.farthest_bucket) if config.buckets else None
        self.distances = Embedding(kernels) if config.disentangled else None
        self.distance_norm = LayerNorm(kernels, config.norm_epsilon) if config.normalized_distances else None
        self.convolution: RowConvolution | None = None
        if config.convolution is not None:
            self.convolution = RowConvolution(
                kernels, config.norm_epsilon, config.convolution.groups, config.convolution.activation
            )
        self._rotaries = [Rotary(kernels, spec, config.head_dim) for spec in config.ropes]
        by_length = config.buckets or config.convolution or config.disentangled  # what they do depends on how long the rows are
        self._to_record = None if by_length else kernels.tape
        self._recorded: RecordedEncoding | None = None

    @torch.inference_mode()
    def prepare(self) -> None:
        """Compute what does not change with the text; once, when all weights are there."""
        if self.distances is not None:
            table = self.distances.weight if self.distance_norm is None else self.distance_norm(self.distances.weight)
            for layer in self.layers:
                assert isinstance(layer.attention, DisentangledAttention)
                layer.attention.prepare(table)
            self.distances = self.distance_norm = None

    @torch.inference_mode()
    def encode(self, batch: PackedBatch, exits: Collection[int] = ()) -> Encoded:
        if self._to_record is not None:  # not when it is loaded: models with several encoders share parts of them afterwards
            self._recorded, self._to_record = record_encoding(self._all_layers, self._to_record), None
        if self._recorded is not None and self._recorded.inputs.fits(batch) and set(exits) <= {self.num_layers}:
            with suppress(IndexError):  # of the kernel-by-kernel pass it says what was wrong
                last = self._recorded.run(*self._recorded.inputs.load(batch))
                return Encoded(last, dict.fromkeys(exits, last))
        rows = group_rows(batch)
        step = self._step(rows.positions, rows.groups)
        wanted = frozenset(exits)
        depth = max(wanted, default=self.num_layers)
        x = embedded = self.embedding(rows.token_ids, rows.positions, rows.segments)
        found: dict[int, torch.Tensor] = {}
        for number, layer in enumerate(self.layers[:depth], 1):
            x = layer(x, step)
            if number == 1 and self.convolution is not None:
                x = self.convolution(embedded, x, rows.groups)
            if number in wanted or number == depth:
                norm = self.norm if self.norm_exits or number == self.num_layers else None
                found[number] = rows.restored(x if norm is None else norm(x))
        return Encoded(found[depth], {number: found[number] for number in wanted})

    def _all_layers(self, inputs: RowInputs) -> torch.Tensor:
        step = self._step(inputs.positions, inputs.groups)
        x = self.embedding(inputs.token_ids, inputs.positions, inputs.segments)
        for layer in self.layers:
            x = layer(x, step)
        return x if self.norm is None else self.norm(x)

    def _step(self, positions: torch.Tensor, groups: RowGroups) -> RowStep:
        bias = None
        if self.distance_bias is not None and groups:
            bias = self.distance_bias.reaching(max(group.length for group in groups))
        return RowStep(groups, tuple(rotary.tables(positions, self.dtype) for rotary in self._rotaries), bias)
