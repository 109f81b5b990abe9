"""How many threads compute, and how many CPUs they may use."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Final

from headway.doctor.evidence.context import Context
from headway.doctor.evidence.log.log import Log
from headway.doctor.evidence.sight import Sight, sight
from headway.doctor.facts.fact import Fact
from headway.doctor.facts.launch import Launch

THREADS: Final = sight(
    "intra-op threads",
    "n_threads = ",
    " CPUs allowed, ",
    "torch.get_num_threads",
    "Number of threads",
    pattern=r"(?:intra-op threads:|n_threads =|torch\.get_num_threads\(\)(?: =|:)|[Nn]umber of (?:OpenMP )?threads:?) ?(?P<threads>\d+)|\b(?P<ours>\d{1,5}) threads \(\d+ CPUs allowed",
)
BOUND: Final = sight("OMP tid:", pattern=r"OMP tid: \d+, core \d+")
SIGHTS: Final[tuple[Sight, ...]] = (THREADS, BOUND)

_VARIABLES: Final = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "VLLM_CPU_NUM_THREADS")


@dataclass(frozen=True, slots=True)
class CpuLimit:
    """`cpus` that may be used at once (quota may be fractional). `by`: "quota" | "affinity" | "machine"."""

    cpus: float
    by: str
    fact: Fact[str]

    @property
    def threads(self) -> int:
        return max(1, math.floor(self.cpus))


def threads_of(log: Log, context: Context, launch: Launch) -> Fact[int] | None:
    """What the program says it uses, else what a variable or flag asks for, else the bound cores."""
    if hit := log.last(THREADS):
        return Fact(int(hit.number("threads" if hit["threads"] else "ours")), hit.quote())
    for name in _VARIABLES:
        if (value := context.number(f"env.{name}")) is not None and value > 0:
            return Fact(int(value), context.quote(f"env.{name}", f"{name}={value:g}"))
    for flag in ("threads", "t"):
        if (given := launch.fact(flag)) and given.value.isdigit():
            return Fact(int(given.value), given.quote)
    bind = context.text("env.VLLM_CPU_OMP_THREADS_BIND")
    if bind and (cores := cpu_list(bind.replace("|", ","))):
        return Fact(len(cores), context.quote("env.VLLM_CPU_OMP_THREADS_BIND", f"VLLM_CPU_OMP_THREADS_BIND={bind}"))
    first = log.first(BOUND)
    return Fact(log.count(BOUND), first.quote()) if first else None


def cpu_limit_of(context: Context) -> CpuLimit | None:
    """The tightest of cgroup quota, affinity and the machine's CPUs."""
    limits: list[CpuLimit] = []
    quota = context.get("host.cgroup.cpu_max")
    if (cpus := _quota(quota)) is not None:
        limits.append(CpuLimit(cpus, "quota", Fact(str(quota), context.quote("host.cgroup.cpu_max"))))
    affinity = context.get("host.affinity")
    if affinity is not None and not isinstance(affinity, bool):
        count = affinity if isinstance(affinity, int) else len(affinity) if isinstance(affinity, list) else len(cpu_list(str(affinity)))
        if count:
            limits.append(CpuLimit(float(count), "affinity", Fact(str(affinity), context.quote("host.affinity"))))
    if (machine := context.number("host.cpus")) is not None and machine > 0:
        limits.append(CpuLimit(machine, "machine", Fact(f"{machine:g}", context.quote("host.cpus"))))
    return min(limits, key=lambda limit: limit.cpus, default=None)


def throttled_share(context: Context) -> float | None:
    """Share of the scheduler's periods in which the group was stopped because its quota was used up."""
    periods, throttled = context.number("host.cgroup.nr_periods"), context.number("host.cgroup.nr_throttled")
    return throttled / periods if periods and throttled is not None else None


def cpu_list(text: str) -> tuple[int, ...]:
    """`0-3,8` as (0, 1, 2, 3, 8); () when it is no such list."""
    cores: list[int] = []
    for part in text.replace(" ", "").split(","):
        found = re.fullmatch(r"(\d{1,5})(?:-(\d{1,5}))?", part)
        if found is None:
            return ()
        cores.extend(range(int(found[1]), int(found[2] or found[1]) + 1))
    return tuple(cores)


def _quota(value: object) -> float | None:
    """`400000 100000` (cgroup v2), a number of CPUs, None for `max` and the unknown."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float)):
        return float(value) if 0 < value < 1e6 else None
    found = re.fullmatch(r"\s*(\d+)[\s/]+(\d+)\s*", str(value))
    return int(found[1]) / int(found[2]) if found and int(found[2]) else None
