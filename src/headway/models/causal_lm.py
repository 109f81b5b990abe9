"""CausalLM: what the engine asks of a language model."""

from __future__ import annotations

import abc

import torch

from headway.kernels.batch import ForwardBatch
from headway.kernels.paged_kv import PagedKV
from headway.models.decoder_config import DecoderConfig


class CausalLM(torch.nn.Module, abc.ABC):
    """A model whose weights are loaded. One thread at a time runs it."""

    config: DecoderConfig
    dtype: torch.dtype

    @abc.abstractmethod
    def forward(self, batch: ForwardBatch, kv: PagedKV) -> torch.Tensor:
        """Run all tokens of `batch`, write their keys and values to `kv`, and return the hidden states of the rows
        `batch.logits_rows` [N, hidden], final norm applied."""

    @abc.abstractmethod
    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """[N, hidden] -> float32 [N, vocabulary]."""
