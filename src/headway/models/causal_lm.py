"""CausalLM: what the engine asks of a language model."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import torch

from headway.kernels.batch import ForwardBatch
from headway.kernels.interface import CPU
from headway.kernels.paged_kv import KVShape, PagedKV
from headway.models.recorded_forward import Forward, StepLimits

if TYPE_CHECKING:
    from headway.models.vision.tower import SiglipTower


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
    tower: SiglipTower | None = None  # of a model that reads images: what stands in the place of their tokens

    def prepared(self, kv: PagedKV, limits: StepLimits) -> Forward:
        """`forward` for one storage and batches of bounded size, with all done ahead that can be. What it returns is valid until the next
        call."""
        return self.forward

    def storage(self, num_blocks: int, block_size: int, kept: torch.dtype) -> PagedKV:
        """Where it writes keys and values, in dtype `kept`."""
        return PagedKV(num_blocks, block_size, self.config.kv_shape, kept, self.device)

    @abc.abstractmethod
    def forward(self, batch: ForwardBatch, kv: PagedKV) -> torch.Tensor:
        """Run all tokens of `batch`, write their keys and values to `kv`, and return the hidden states of the rows
        `batch.logits_rows` [N, hidden], final norm applied."""

    @abc.abstractmethod
    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """[N, hidden] -> float32 [N, vocabulary]."""
