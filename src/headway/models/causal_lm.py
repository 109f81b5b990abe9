"""CausalLM: what the engine asks of a language model."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Protocol

import torch

from headway.kernels.batch import ForwardBatch
from headway.kernels.interface import CPU
from headway.kernels.paged_kv import KVShape, PagedKV
from headway.models.recorded_forward import Forward, StepLimits


class ServedConfig(Protocol):
    """What an engine needs to know of a model: how many logits it makes, and what it keeps for each token."""

    @property
    def vocab_size(self) -> int: ...

    @property
    def kv_shape(self) -> KVShape: ...


class CausalLM(torch.nn.Module, abc.ABC):
    """A model whose weights are loaded. One thread at a time runs it. `head` is the part that `logits` runs: it lives without the layers."""

    config: ServedConfig
    dtype: torch.dtype
    device: torch.device = CPU  # of the hidden states, and of the storage that a pass needs; batches and logits are on the CPU
    head: Callable[[torch.Tensor], torch.Tensor]

    def prepared(self, kv: PagedKV, limits: StepLimits) -> Forward:
        """`forward` for one storage and batches of bounded size, with all done ahead that can be. What it returns is valid until the next
        call."""
        return self.forward

    @abc.abstractmethod
    def forward(self, batch: ForwardBatch, kv: PagedKV) -> torch.Tensor:
        """Run all tokens of `batch`, write their keys and values to `kv`, and return the hidden states of the rows
        `batch.logits_rows` [N, hidden], final norm applied."""

    @abc.abstractmethod
    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """[N, hidden] -> float32 [N, vocabulary]."""
