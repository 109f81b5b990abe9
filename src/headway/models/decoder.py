"""The decoder: embedding, layers of attention and feed-forward, norm, head. All architectures are settings of it."""

from __future__ import annotations

import torch

from headway.kernels.batch import ForwardBatch
from headway.kernels.interface import Kernels
from headway.kernels.paged_kv import PagedKV
from headway.layers.attention import Attention, AttentionShape, Step
from headway.layers.embedding import Embedding
from headway.layers.gated_mlp import GatedMLP
from headway.layers.lm_head import LMHead
from headway.layers.rms_norm import HeadNorm, RMSNorm
from headway.layers.rotary import Rotary
from headway.models.causal_lm import CausalLM
from headway.models.decoder_config import DecoderConfig


class DecoderLayer:
    """Pre-norm attention, then pre-norm feed-forward, each added to the residual stream."""

    __slots__ = ("attention", "attention_norm", "mlp", "mlp_norm")

    def __init__(self, kernels: Kernels, config: DecoderConfig, index: int):
        def norm() -> RMSNorm:
            return RMSNorm(kernels, config.norm_epsilon)

        shape = AttentionShape(
            config.num_heads, config.num_kv_heads, config.head_dim, config.attention_scale,
            config.layer_windows[index], config.layer_ropes[index],
        )  # fmt: skip
        head_norm = (
            HeadNorm(kernels, config.norm_epsilon, config.num_heads, config.num_kv_heads) if config.qk_norm else None
        )
        self.attention_norm = norm()
        self.attention = Attention(kernels, index, shape, head_norm, norm() if config.post_norms else None)
        self.mlp_norm = norm()
        self.mlp = GatedMLP(kernels, config.activation, norm() if config.post_norms else None)

    def __call__(self, x: torch.Tensor, step: Step) -> torch.Tensor:
        """[T, hidden] -> [T, hidden]."""
        x = self.attention(self.attention_norm(x), x, step)
        return self.mlp(self.mlp_norm(x), x)


class Decoder(CausalLM):
    """Made without weights; `load.load_model` fills the modules by their attribute paths.

    Modules are plain objects, not torch modules: packed weights are no parameters, and a torch module call costs a
    microsecond, three hundred times a step.
    """

    def __init__(self, config: DecoderConfig, dtype: torch.dtype, kernels: Kernels):
        super().__init__()
        self.config = config
        self.dtype = dtype
        self.embedding = Embedding(config.embedding_scale)
        self.layers = [DecoderLayer(kernels, config, i) for i in range(config.num_layers)]
        self.norm = RMSNorm(kernels, config.norm_epsilon)
        self.head = LMHead(kernels, config.logit_softcap)
        self._rotaries = [Rotary(spec, config.head_dim) for spec in config.ropes]
        self._plan = kernels.plan

    @torch.inference_mode()
    def forward(self, batch: ForwardBatch, kv: PagedKV) -> torch.Tensor:
        step = Step(
            kv=kv,
            plan=self._plan(batch, kv, self.config.num_heads, self.config.windows),
            tables=tuple(rotary.tables(batch.positions, self.dtype) for rotary in self._rotaries),
        )
        x = self.embedding(batch.token_ids)
        for layer in self.layers:
            x = layer(x, step)
        return self.norm(x.index_select(0, batch.logits_rows))

    @torch.inference_mode()
    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        return self.head(hidden)
