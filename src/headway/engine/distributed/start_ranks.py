"""start_ranks: the processes beside rank 0, and the plan by which rank 0 loads its own share."""

from __future__ import annotations

import dataclasses
import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import torch

from headway.distributed.control_channel import ControlChannel, ControlListener
from headway.distributed.process_groups import Meeting, ProcessGroups, open_store
from headway.distributed.rank_place import RankPlace
from headway.engine.config import EngineConfig
from headway.engine.distributed.local_process import LocalProcess
from headway.engine.distributed.messages import Hello, Task, encoded, report_of
from headway.engine.distributed.rank_homes import rank_homes
from headway.engine.distributed.rank_processes import Member, RankProcesses
from headway.engine.distributed.rank_zero import RankZeroModel
from headway.engine.distributed.refused_settings import check_ranks
from headway.errors import NotBuiltError, RankError
from headway.kernels.interface import Kernels
from headway.models.causal_lm import CausalLM, ServedConfig
from headway.models.fill import Progress
from headway.models.native import NativePlan
from headway.models.plan import ModelPlan
from headway.models.sharded.rank_plan import RankPlan, plan_rank

_log = logging.getLogger(__name__)
_ARRIVAL_SECONDS: Final = 300.0  # a process imports torch first, which takes long on a busy machine or a slow disk


def rank_threads(config: EngineConfig, threads: int) -> int:
    """Of each rank on this host, which share the CPUs."""
    return max(1, threads // max(1, config.tensor_parallel_size * config.pipeline_parallel_size // config.nnodes))


@dataclass(frozen=True, slots=True)
class StartedRanks:
    """The others are loading; `plan` loads rank 0's share beside them."""

    processes: RankProcesses
    plan: ZeroPlan


@dataclass(frozen=True, slots=True)
class ZeroPlan:
    """A ModelPlan of what rank 0 has."""

    rank_plan: RankPlan
    groups: ProcessGroups
    processes: RankProcesses

    @property
    def config(self) -> ServedConfig:
        return self.rank_plan.whole

    @property
    def parameters(self) -> int:
        return self.rank_plan.own.parameters

    def load(self, dtype: torch.dtype, kernels: Kernels, progress: Progress) -> CausalLM:
        """Returns when all ranks have theirs. Raises RankError when one could not load it."""
        own = self.rank_plan.load(dtype, kernels, progress, self.groups)
        self.processes.wait_ready()
        return RankZeroModel(own, self.rank_plan.whole, self.processes)


def start_ranks(config: EngineConfig, plan: ModelPlan, max_model_len: int, threads: int) -> StartedRanks | None:
    """None when one rank does all. Raises ConfigError and ArtifactError (`cannot_divide`), NotBuiltError, RankError."""
    check_ranks(config)
    place = RankPlace(0, config.tensor_parallel_size, config.pipeline_parallel_size)
    if place.world == 1:
        return None
    if not isinstance(plan, NativePlan):
        raise NotBuiltError(
            f"{config.model} is run by transformers, which only one rank can do", param="tensor_parallel_size",
            fix="Choose a native model (docs/models.md), or leave --tensor-parallel-size and --pipeline-parallel-size out.",
        )  # fmt: skip
    mine = plan_rank(plan, place)
    for rank in range(1, place.world):
        plan_rank(plan, RankPlace(rank, place.tensor, place.pipeline))  # refuses here what would be refused there
    patience, homes = config.distributed_timeout_seconds, rank_homes(config, plan.card.path)
    listener = ControlListener(homes.address, homes.port, homes.key)
    started = {
        rank: LocalProcess(rank, homes.address, listener.port, homes.key, rank_threads(config, threads), patience) for rank in homes.local
    }
    try:
        members = _gathered(listener, started, homes.hosts)
        store = open_store(homes.address, 0)
        for rank, member in members.items():
            task = Task(_changed(config), max_model_len, place.tensor, place.pipeline, homes.address, store.port, homes.hosts[rank])
            member.channel.send(encoded(task))
    except BaseException:
        for process in started.values():
            process.end(at_once=True)
        raise
    finally:
        listener.close()
    processes = RankProcesses(members, patience)
    with processes.together():
        groups = ProcessGroups(place, Meeting(homes.address, store.port, homes.address, patience), store)
    processes.on_close(groups.close)
    _log.info("%d ranks on %d node(s): tensor parallel %d, pipeline parallel %d", place.world, config.nnodes, place.tensor, place.pipeline)
    return StartedRanks(processes, ZeroPlan(mine, groups, processes))


def _gathered(listener: ControlListener, started: dict[int, LocalProcess], hosts: Sequence[str]) -> dict[int, Member]:
    """Once all have reported, those that other nodes start too. Raises RankError for the first that ends, or does not come in time."""
    found: dict[int, Member] = {}
    others = range(1, len(hosts))

    def accept() -> None:
        while len(found) < len(others):
            try:
                channel = listener.accept()
            except OSError:
                return
            if channel is not None and (hello := _hello(channel)) is not None and hello.rank in others:
                found[hello.rank] = Member(hello, channel, started.get(hello.rank))

    threading.Thread(target=accept, name="RankArrivals", daemon=True).start()
    end = time.monotonic() + _ARRIVAL_SECONDS
    while len(found) < len(others):
        for rank, process in started.items():
            if (how := process.how_it_ended()) is not None:
                raise RankError(rank, hosts[rank], f"{how} before it reported")
        if time.monotonic() > end:
            missing = next(rank for rank in others if rank not in found)
            raise RankError(missing, hosts[missing], f"it did not report within {_ARRIVAL_SECONDS:g} seconds")
        time.sleep(0.02)
    return dict(sorted(found.items()))


def _hello(channel: ControlChannel) -> Hello | None:
    try:
        report = report_of(channel.receive())
    except (OSError, EOFError, msgspec.DecodeError):
        return None
    return report if isinstance(report, Hello) else None


# What concerns rank 0 alone.
_NOT_SENT = frozenset({"logits_processors", "nnodes", "node_rank"})


def _changed(config: EngineConfig) -> dict[str, Any]:
    """The fields that differ from their defaults."""
    found = {}
    for field in dataclasses.fields(EngineConfig):
        value = getattr(config, field.name)
        default = field.default_factory() if field.default_factory is not dataclasses.MISSING else field.default
        if field.name not in _NOT_SENT and value != default:
            found[field.name] = dict(value) if hasattr(value, "keys") else value
    return found
