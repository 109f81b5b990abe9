"""RankZeroModel: the model as the engine sees it. Whatever it runs, all ranks run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from headway.engine.distributed.messages import Clear, Command, GivenLogits, Logits, Reserve, as_message
from headway.engine.distributed.rank_processes import RankProcesses
from headway.kernels.batch import ForwardBatch
from headway.kernels.paged_kv import KVShape, PagedKV
from headway.models.causal_lm import CausalLM
from headway.models.decoder_config import DecoderConfig
from headway.models.sharded.rank_decoder import RankDecoder
from headway.models.sharded.whole_logits import receive_logits


@dataclass(frozen=True, slots=True)
class ServedSizes:
    """`kv_shape` is that of the rank."""

    vocab_size: int
    kv_shape: KVShape


class RankZeroModel(CausalLM):
    """Rank 0's own share, and commands to the others. Its methods raise RankError when a rank has failed."""

    def __init__(self, own: RankDecoder, whole: DecoderConfig, processes: RankProcesses):
        super().__init__()
        self.own = own
        self.config = ServedSizes(whole.vocab_size, own.config.kv_shape)
        self.dtype, self.device = own.dtype, own.device
        self.processes = processes
        self.head = self.logits
        self._hidden_size = whole.hidden_size
        self._last = torch.empty(0)

    def storage(self, num_blocks: int, block_size: int, kept: torch.dtype) -> PagedKV:
        self._tell(Reserve(num_blocks, block_size, str(kept).removeprefix("torch.")))
        return RankZeroKV(num_blocks, block_size, self.config.kv_shape, kept, self.processes)

    @torch.inference_mode()
    def forward(self, batch: ForwardBatch, kv: PagedKV) -> torch.Tensor:
        self._tell(as_message(batch))
        place, groups = self.own.groups.place, self.own.groups
        with self.processes.together():
            hidden = self.own.forward(batch, kv)
            if not place.is_last:
                hidden = groups.receive(torch.empty(len(batch.logits_rows), self._hidden_size, dtype=self.dtype), place.last_ranks[0])
        self._last = hidden
        return hidden

    @torch.inference_mode()
    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        rows, place, groups = len(hidden), self.own.groups.place, self.own.groups
        start = _rows_before(hidden, self._last)
        self._tell(GivenLogits(rows) if start is None else Logits(start, start + rows))
        with self.processes.together():
            if start is None:
                for rank in place.last_ranks:
                    if rank != place.rank:
                        groups.send(hidden.contiguous(), rank)
            own = self.own.logits(hidden) if place.is_last else None
            return receive_logits(groups, self.config.vocab_size, rows, own)

    def _tell(self, command: Command) -> None:
        self.processes.tell(command)


class RankZeroKV(PagedKV):
    """Rank 0's part of the keys and values. What is cleared here is cleared everywhere."""

    def __init__(self, num_blocks: int, block_size: int, shape: KVShape, dtype: torch.dtype, processes: RankProcesses):
        super().__init__(num_blocks, block_size, shape, dtype)
        self._processes = processes

    def clear(self, blocks: Sequence[int]) -> None:
        self._processes.tell(Clear(list(blocks)))
        super().clear(blocks)


def _rows_before(part: torch.Tensor, whole: torch.Tensor) -> int | None:
    """The first row of `whole` that `part` is a view of, row after row; None when it is none."""
    if part.dim() != 2 or not part.is_contiguous() or part.untyped_storage().data_ptr() != whole.untyped_storage().data_ptr():
        return None
    return (part.storage_offset() - whole.storage_offset()) // part.shape[1]


