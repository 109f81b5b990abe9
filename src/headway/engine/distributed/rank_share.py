"""RankShare: a rank's part of a model and of its KV cache, and the commands that concern them."""

from __future__ import annotations

from dataclasses import replace

import torch

from headway.distributed.process_groups import Meeting, ProcessGroups
from headway.distributed.rank_place import RankPlace
from headway.engine.batch_invariance import arithmetic
from headway.engine.compute_dtype import compute_dtype
from headway.engine.config import EngineConfig
from headway.engine.configured_card import configured_card
from headway.engine.distributed.messages import Clear, Command, Forward, GivenLogits, Logits, Reserve, Task, as_batch
from headway.engine.online_rounding_choice import rounding_choice
from headway.kernels.paged_kv import PagedKV
from headway.models.native import plan_native
from headway.models.sharded.rank_decoder import RankDecoder
from headway.models.sharded.rank_plan import plan_rank
from headway.models.sharded.whole_logits import send_logits


class RankShare:
    """Loads in its constructor, which raises what loading raises."""

    def __init__(self, task: Task, rank: int, timeout_seconds: float):
        config = EngineConfig(**task.config)
        card = configured_card(config)
        dtype = compute_dtype(config.dtype, card)
        kernels = arithmetic(config.batch_invariant, dtype).kernels
        plan = replace(plan_native(card, task.max_model_len), rounding=rounding_choice(config, card))
        place = RankPlace(rank, task.tensor, task.pipeline)
        mine = plan_rank(plan, place)
        self.groups = ProcessGroups(place, Meeting(task.store_host, task.store_port, task.own_host, timeout_seconds))
        self.model: RankDecoder = mine.load(dtype, kernels, lambda done, total: None, self.groups)
        self._kv: PagedKV | None = None
        self._hidden = torch.empty(0)

    @property
    def kv(self) -> PagedKV:
        assert self._kv is not None, "Reserve comes first"
        return self._kv

    @torch.inference_mode()
    def do(self, command: Command) -> None:
        """Whatever it raises ends this rank."""
        place = self.groups.place
        if isinstance(command, Forward):
            self._hidden = self.model.forward(as_batch(command), self.kv)
            if place.rank == place.last_ranks[0]:
                self.groups.send(self._hidden.cpu().contiguous(), 0)
        elif isinstance(command, Logits) and place.is_last:
            send_logits(self.groups, self.model.logits(self._hidden[command.start : command.stop]))
        elif isinstance(command, GivenLogits) and place.is_last:
            given = torch.empty(command.rows, self.model.hidden_size, dtype=self.model.dtype)
            send_logits(self.groups, self.model.logits(self.groups.receive(given, 0)))
        elif isinstance(command, Clear):
            self.kv.clear(command.blocks)
        elif isinstance(command, Reserve):
            dtype: torch.dtype = getattr(torch, command.dtype)
            self._kv = PagedKV(command.num_blocks, command.block_size, self.model.config.kv_shape, dtype, self.model.device)
