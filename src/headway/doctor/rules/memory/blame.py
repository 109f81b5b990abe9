"""Which rule answers for the first allocator message of a case, by arithmetic on its numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from headway.doctor.case import Case
from headway.doctor.facts.allocator import OutOfMemory
from headway.doctor.facts.startup import SIGHTS as STARTUP_SIGHTS
from headway.doctor.rules.memory.moment import Moment, moment_of
from headway.doctor.rules.memory.sizes import loads_unquantised, weights_gib

RIM: Final = 0.97  # from here on nothing is left beside the cap
_FOREIGN_GIB: Final = 1.0  # a desktop without windows has less


@dataclass(frozen=True, slots=True)
class Blame:
    """`rule`: the id of the rule that explains `oom`."""

    rule: str
    oom: OutOfMemory
    moment: Moment


def blame(case: Case) -> Blame | None:
    """None without such a message, or when its numbers and its place say nothing."""
    if not case.out_of_memory:
        return None
    oom = next((one for one in case.out_of_memory if one.total is not None), case.out_of_memory[0])
    moment = moment_of(case, oom)
    rule = _rule(case, oom, moment)
    return Blame(rule, oom, moment) if rule else None


def foreign_processes(case: Case, oom: OutOfMemory) -> tuple[tuple[int, float], ...]:
    """Processes on the same card that are no workers of this engine."""
    own = {hit.line.process.rpartition("pid=")[2].split(",")[0] for hit in case.log.hits(*STARTUP_SIGHTS)}
    return tuple((pid, size) for pid, size in oom.foreign if str(pid) not in own)


def _rule(case: Case, oom: OutOfMemory, moment: Moment) -> str:
    if moment == "logprobs":
        return "O8"
    if moment == "sampler":
        return "O6"
    weights = weights_gib(case)
    too_large = weights is not None and oom.total is not None and weights > oom.total - 1
    others = foreign_processes(case, oom)
    foreign = sum(size for _, size in others) if oom.foreign else oom.foreign_gib
    if foreign >= _FOREIGN_GIB and foreign >= (oom.asked or 0) and not (too_large and moment == "loading"):
        return "O13" if _only_rank(case, oom) else "O3"
    if (oom.unallocated or 0) >= max(oom.asked or 0, 1.0):
        return "O9"
    utilization = case.memory.utilization.value if case.memory.utilization else 0.0
    if moment in ("capture", "cache"):
        return "O11" if utilization >= RIM else "O7"
    if moment == "loading":
        return "O14" if loads_unquantised(case) else "O5"
    if moment == "profiling":
        return "O5" if too_large else "O1"
    if moment == "serving":
        return "O11" if utilization >= RIM else "O9"
    own = oom.own or oom.allocated or 0
    return "O5" if oom.total and own >= 0.85 * oom.total else ""


def _only_rank(case: Case, oom: OutOfMemory) -> bool:
    """One of several ranks ran out, the others did not."""
    failed = {other.hit.line.process for other in case.out_of_memory}
    ranks = {hit.line.process for hit in case.log.hits(*STARTUP_SIGHTS) if _is_rank(hit.line.process)}
    return len(failed) == 1 and len(ranks | failed) > 1 and _is_rank(oom.hit.line.process)


def _is_rank(process: str) -> bool:
    return "Worker" in process or "rank" in process
