"""A model of transformers with paged attention in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from headway.kernels.batch import ForwardBatch
from headway.kernels.interface import Kernels
from headway.kernels.paged_kv import KVShape, PagedKV
from headway.models.causal_lm import CausalLM
from headway.models.fallback.attention import attending
from headway.models.fallback.head import decoder_of, head_of
from headway.models.fallback.paging import PagedStep
from headway.models.fallback.trial_run import AttentionNeeds


@dataclass(frozen=True, slots=True)
class FallbackConfig:
    """What the engine needs to know of a model."""

    vocab_size: int
    kv_shape: KVShape


class FallbackModel(CausalLM):
    """Owns `model`, whose weights are loaded."""

    config: FallbackConfig

    @torch.inference_mode()
    def __init__(self, model: Any, needs: AttentionNeeds, config: FallbackConfig, dtype: torch.dtype, kernels: Kernels):
        super().__init__()
        self.config = config
        self.dtype = dtype
        self._needs = needs
        self._kernels = kernels
        self._decoder = decoder_of(model)
        self.head = head_of(model)

    @torch.inference_mode()
    def forward(self, batch: ForwardBatch, kv: PagedKV) -> torch.Tensor:
        tokens = batch.token_ids[None]
        with attending(PagedStep(self._kernels, self._needs, batch, kv)):
            out = self._decoder(
                input_ids=tokens, position_ids=batch.positions[None], attention_mask=torch.ones_like(tokens), use_cache=False
            )
        hidden: torch.Tensor = out.last_hidden_state[0]
        return hidden.index_select(0, batch.logits_rows)

    @torch.inference_mode()
    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        if not len(hidden):
            return hidden.new_empty(0, self.config.vocab_size, dtype=torch.float32)
        return self.head(hidden)
