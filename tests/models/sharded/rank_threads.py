"""The ranks of a model as threads of this process, with process groups of gloo between them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

from headway.artifacts.inspect import inspect
from headway.distributed.process_groups import Meeting, ProcessGroups, open_store
from headway.distributed.rank_place import RankPlace
from headway.kernels.batch import ForwardBatch
from headway.kernels.choice import exact_kernels
from headway.kernels.paged_kv import PagedKV
from headway.models.native import NativePlan, plan_native
from headway.models.sharded.rank_plan import plan_rank
from headway.models.sharded.whole_logits import receive_logits, send_logits

T = TypeVar("T")
HOST = "127.0.0.1"


def on_ranks(tensor: int, pipeline: int, act: Callable[[ProcessGroups], T]) -> list[T]:
    """What `act` returns on every rank."""
    world = tensor * pipeline
    store = open_store(HOST, 0)
    meeting = Meeting(HOST, store.port, HOST, 30.0)

    def run(rank: int) -> T:
        groups = ProcessGroups(RankPlace(rank, tensor, pipeline), meeting, store if rank == 0 else None)
        try:
            return act(groups)
        finally:
            groups.close()

    with ThreadPoolExecutor(world) as threads:
        return list(threads.map(run, range(world)))


def divided_logits(plan: NativePlan, batches: list[ForwardBatch], blocks: int, tensor: int, pipeline: int) -> list[torch.Tensor]:
    """Of each batch, by ranks that share one model, in float32."""

    def act(groups: ProcessGroups) -> list[torch.Tensor]:
        rank_plan = plan_rank(plan, groups.place, {})
        model = rank_plan.load(torch.float32, exact_kernels(torch.float32), lambda done, total: None, groups)
        kv = PagedKV(blocks, 16, model.config.kv_shape, torch.float32)
        found = []
        for batch in batches:
            hidden = model.forward(batch, kv)
            own = model.logits(hidden) if groups.place.is_last else None
            if groups.place.rank == 0:
                found.append(receive_logits(groups, plan.config.vocab_size, len(batch.logits_rows), own))
            elif own is not None:
                send_logits(groups, own)
        return found

    return on_ranks(tensor, pipeline, act)[0]


def whole_plan(folder: str, context: int) -> NativePlan:
    return plan_native(inspect(folder), context)
