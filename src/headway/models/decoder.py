"""The decoder: embedding, layers of attention and feed-forward, norm, head. All architectures are settings of it."""

from __future__ import annotations

import torch

from headway.kernels.batch import ForwardBatch
from headway.kernels.interface import Kernels, reach
from headway.kernels.paged_kv import PagedKV
from headway.layers.alibi import AlibiTable
from headway.layers.attention import Attention, AttentionShape, Step
from headway.layers.embedding import Embedding
from headway.layers.gated_mlp import GatedMLP
from headway.layers.lm_head import LMHead
from headway.layers.moe import MixtureOfExperts
from headway.layers.norms import HEAD_NORMS, NORMS, HeadNorms, Norm
from headway.layers.plain_mlp import PlainMLP
from headway.layers.position_embedding import PositionEmbedding
from headway.layers.rotary import Rotary
from headway.models.causal_lm import CausalLM
from headway.models.decoder_config import DecoderConfig
from headway.models.graphed_forward import cuda_capture, graph_forward, most_captured
from headway.models.recorded_forward import Forward, StepLimits, record_forward


class DecoderLayer:
    """Pre-norm attention, then pre-norm feed-forward, each added to the residual stream."""

    __slots__ = ("attention", "attention_norm", "mlp", "mlp_norm")

    def __init__(self, kernels: Kernels, config: DecoderConfig, index: int):
        def norm() -> Norm:
            return NORMS[config.norm](kernels, config.norm_epsilon)

        def post_norm() -> Norm | None:
            return norm() if config.post_norms else None

        self.attention_norm = norm()
        self.attention = Attention(
            kernels, index, _attention_shape(config, index), _head_norm(kernels, config), post_norm(), config.residual_scale
        )
        self.mlp_norm = norm()
        self.mlp: GatedMLP | PlainMLP | MixtureOfExperts
        if config.experts is not None and config.layer_sparse[index]:
            self.mlp = MixtureOfExperts(kernels, config.activation, config.experts.routing)
        else:
            mlp = GatedMLP if config.gated_mlp else PlainMLP
            self.mlp = mlp(kernels, config.activation, post_norm(), config.residual_scale)

    def __call__(self, x: torch.Tensor, step: Step) -> torch.Tensor:
        """[T, hidden] -> [T, hidden]."""
        x = self.attention(self.attention_norm(x), x, step)
        return self.mlp(self.mlp_norm(x), x)


def _attention_shape(config: DecoderConfig, layer: int) -> AttentionShape:
    return AttentionShape(
        num_heads=config.num_heads, num_kv_heads=config.num_kv_heads, head_dim=config.head_dim, scale=config.attention_scale,
        window=config.layer_windows[layer], rope=config.layer_ropes[layer], softcap=config.attention_softcap,
    )  # fmt: skip


def _head_norm(kernels: Kernels, config: DecoderConfig) -> HeadNorms | None:
    if config.qk_norm is None:
        return None
    return HEAD_NORMS[config.norm, config.qk_norm](kernels, config.norm_epsilon, config.num_heads, config.num_kv_heads)


class PostNormLayer(DecoderLayer):
    """Nothing is normalised but what attention and feed-forward return (OLMo 2)."""

    __slots__ = ()

    def __call__(self, x: torch.Tensor, step: Step) -> torch.Tensor:
        """[T, hidden] -> [T, hidden]."""
        x = self.attention(x, x, step)
        return self.mlp(x, x)


class ParallelLayer(DecoderLayer):
    """Attention and feed-forward read the same residual stream, and both are added to it."""

    __slots__ = ("_own_mlp_norm",)

    def __init__(self, kernels: Kernels, config: DecoderConfig, index: int):
        super().__init__(kernels, config, index)
        self._own_mlp_norm = config.mlp_norm

    def __call__(self, x: torch.Tensor, step: Step) -> torch.Tensor:
        """[T, hidden] -> [T, hidden]."""
        normed = self.attention_norm(x)
        attended = self.attention(normed, x, step)
        return self.mlp(self.mlp_norm(x) if self._own_mlp_norm else normed, attended)


class Decoder(CausalLM):
    """Made without weights; `load.load_model` fills the modules by their attribute paths.

    Modules are plain objects, not torch modules: packed weights are no parameters, and a torch module call costs a
    microsecond, three hundred times a step.
    """

    config: DecoderConfig

    def __init__(self, config: DecoderConfig, dtype: torch.dtype, kernels: Kernels):
        super().__init__()
        self.config = config
        self.dtype = dtype
        self.embedding = Embedding(kernels, config.embedding_scale or 1.0, rounded=config.embedding_scale_rounded)
        self.positions = PositionEmbedding(kernels) if config.learned_positions else None
        layer = ParallelLayer if config.parallel_residual else DecoderLayer if config.pre_norms else PostNormLayer
        self.layers = [layer(kernels, config, i) for i in range(config.num_layers)]
        self.norm = NORMS[config.norm](kernels, config.norm_epsilon)
        self.head = LMHead(kernels, config.logit_softcap, config.logit_divisor)
        self._rotaries = [Rotary(kernels, spec, config.head_dim) for spec in config.ropes]
        self._alibi = AlibiTable(config.num_heads, config.attention_scale, kernels.device) if config.alibi else None
        self._plan, self._select_rows = kernels.plan, kernels.select_rows
        self._tape, self._decode_buffers, self.device = kernels.tape, kernels.decode_buffers, kernels.device

    def prepared(self, kv: PagedKV, limits: StepLimits) -> Forward:
        captured = self._decode_buffers if self.config.experts is None else None  # which experts run is decided on the host
        if self._tape is None and captured is None:
            return self.forward
        if self._alibi is not None:  # making the table is nothing that can be recorded
            self._alibi.reaching(reach(-(-limits.positions // kv.block_size) * kv.block_size, kv.block_size))
        if captured is not None:
            buffers = captured(kv, most_captured(limits.sequences), limits.positions)
            return graph_forward(self.forward, buffers, kv, cuda_capture(self.device))
        return record_forward(self.forward, self._tape, kv, limits)

    @torch.inference_mode()
    def forward(self, batch: ForwardBatch, kv: PagedKV) -> torch.Tensor:
        batch = batch.on(self.device)
        step = Step(
            kv=kv,
            plan=self._plan(batch, kv, self.config.num_heads, self.config.windows),
            tables=tuple(rotary.tables(batch.positions, self.dtype) for rotary in self._rotaries),
            key_bias=self._key_bias(batch, kv),
        )
        x = self._entered(batch)
        for layer in self.layers:
            x = layer(x, step)
        return self._left(x, batch)

    def _entered(self, batch: ForwardBatch) -> torch.Tensor:
        """[T, hidden]: what the first layer reads."""
        x = self.embedding(batch.token_ids)
        if batch.given is not None:
            x = batch.given.put(x)
        return x if self.positions is None else self.positions.add_to(x, batch.positions)

    def _left(self, x: torch.Tensor, batch: ForwardBatch) -> torch.Tensor:
        """Of what the last layer wrote, the wanted rows [N, hidden]."""
        return self.norm(self._select_rows(x, batch.logits_rows))

    def _key_bias(self, batch: ForwardBatch, kv: PagedKV) -> torch.Tensor | None:
        return None if self._alibi is None else self._alibi.reaching(reach(int(batch.context_lens.max()), kv.block_size))

    @torch.inference_mode()
    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        return self.head(hidden.to(self.device)).cpu()
