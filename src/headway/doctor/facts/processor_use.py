"""How busy the processors are: GPU use, CPU use per process; and whether the engine computes on a CPU at all."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Final

from headway.capacity.device_table import Device as KnownGpu
from headway.capacity.device_table import find_device
from headway.doctor.evidence.context import Context
from headway.doctor.evidence.log.log import Log
from headway.doctor.evidence.sight import Sight, sight
from headway.doctor.facts.device import Device
from headway.doctor.facts.fact import Fact
from headway.doctor.facts.metrics import scrapes_of
from headway.errors import ConfigError

ON_CPU: Final = sight("torch intra-op threads", "OMP threads binding of Process", "no usable GPU found", "torch.get_num_threads")
SIGHTS: Final[tuple[Sight, ...]] = (ON_CPU,)

_GPU_USE: Final = re.compile(r"(?i)gpu_?(?:.*_)?util|sm_?(?:active|util)")
_NOT_USE: Final = re.compile(r"(?i)mem|cache|fb_")
_CPU_USE: Final = re.compile(r"(?i)(?:cpu|(?<![a-z])core|thread).*(?:percent|pct|util)|(?:percent|pct).*cpu")
_PROCESS: Final = re.compile(
    r"(?i)[\w:./-]*(?:APIServer|API server|API process|EngineCore|engine core|engine process|api_server|uvicorn|vllm|sglang|python3?|locust|bench\w*|guidellm|aiperf|client|load ?gen\w*)[\w:./-]*"
)
_PERCENT: Final = re.compile(r"(?<![\d.])(\d{1,4}(?:\.\d+)?) ?%")
_GPU_IN_TEXT: Final = re.compile(r"(?i)\b(?:gpu|sm)\b[^%;\n]{0,40}?(?<![\d.])(\d{1,3}(?:\.\d+)?) ?%")


@dataclass(frozen=True, slots=True)
class Busy:
    """A process and the share of one core that it uses (1.0 = one whole core)."""

    name: str
    cores: float
    fact: Fact[float]


def on_cpu(log: Log, context: Context, device: Device) -> bool:
    """Stated by the log, or the host was looked at and has no GPU, whatever platform a log claims."""
    gpus = context.get("host.gpus")
    return device.is_cpu or log.sees(ON_CPU) or (isinstance(gpus, list) and not gpus)


def on_gpu(log: Log, context: Context, device: Device) -> bool:
    return not on_cpu(log, context, device) and device.kind in ("cuda", "rocm", "xpu", "hpu")


def known_gpu(context: Context) -> KnownGpu | None:
    """The first GPU in the table of known devices."""
    name = context.text("host.gpus.0.name")
    if not name:
        return None
    try:
        return find_device(name)
    except ConfigError:
        return None


def gpu_use(context: Context) -> Fact[float] | None:
    """Share of time in which the GPUs compute, 0 to 1: the median of samples, else what the host says of the busiest."""
    samples: list[tuple[float, str]] = []
    for scrape in scrapes_of(context):
        for name, series in scrape.families.items():
            if _GPU_USE.search(name) and not _NOT_USE.search(name):
                value = max(one.value for one in series)
                samples.append((value / 100 if value > 1.5 or "perc" in name else value, f"metrics.{scrape.index}"))
                break
    if samples:
        value = median(sample for sample, _ in samples)
        return Fact(value, context.quote(samples[-1][1], f"GPU use {value:.0%} (median of {len(samples)} samples)"))
    found = [
        (number, f"host.gpus.{index}.util_percent")
        for index in range(len(context.items("host.gpus")))
        if (number := context.number(f"host.gpus.{index}.util_percent")) is not None
    ]
    found = found or [
        (float(hit[1]), f"host.probes.{index}")
        for index, probe in enumerate(context.items("host.probes"))
        if (hit := _GPU_IN_TEXT.search(str(probe))) and not _NOT_USE.search(hit[0])
    ]
    if not found:
        return None
    percent, path = max(found)
    return Fact(percent / 100, context.quote(path, f"util_percent {percent:g}"))


def busy_processes(context: Context) -> list[Busy]:
    """Processes whose CPU use is known, busiest first."""
    return sorted((*_of_host(context), *_of_metrics(context), *_of_probes(context)), key=lambda busy: -busy.cores)


def _of_host(context: Context) -> Iterator[Busy]:
    for index, process in enumerate(context.items("host.processes")):
        path = f"host.processes.{index}"
        if not isinstance(process, Mapping):
            if (said := _said_of(str(process))) is not None:
                yield Busy(*said, Fact(said[1], context.quote(path, str(process)[:120])))
            continue
        for key in ("cpu_percent", "cpu_pct", "cpu", "percent_cpu"):
            if (percent := context.number(f"{path}.{key}")) is not None:
                name = str(process.get("command") or process.get("name") or process.get("pid", ""))[:80]
                yield Busy(name, percent / 100, Fact(percent / 100, context.quote(path, f"{name} {key} {percent:g}")))
                break


def _of_metrics(context: Context) -> Iterator[Busy]:
    scrapes = scrapes_of(context)
    for name in dict.fromkeys(family for scrape in scrapes for family in scrape.families if _CPU_USE.search(family) and not re.search(r"(?i)cache", family)):
        readings = [(one, scrape.index) for scrape in scrapes for one in scrape.series(name)]
        owners = dict.fromkeys(next(iter(one.labels.values()), name) for one, _ in readings)
        for owner in owners:
            values = [one.value for one, _ in readings if next(iter(one.labels.values()), name) == owner]
            percent = median(values)
            yield Busy(owner, percent / 100, Fact(percent / 100, context.quote(f"metrics.{readings[-1][1]}", f"{name} {percent:g}")))
    if len(scrapes) > 1:
        first, last = scrapes[0], scrapes[-1]
        used, before = last.total("process_cpu_seconds"), first.total("process_cpu_seconds")
        if used is not None and before is not None and first.t is not None and last.t is not None and last.t > first.t and used >= before:
            cores = (used - before) / (last.t - first.t)
            shown = f"process_cpu_seconds_total grew by {used - before:.1f} in {last.t - first.t:g} s"
            yield Busy("the process that answers /metrics (APIServer)", cores, Fact(cores, context.quote(f"metrics.{last.index}", shown)))


def _of_probes(context: Context) -> Iterator[Busy]:
    for index, probe in enumerate(context.items("host.probes")):
        text = str(probe)
        if not re.search(r"(?i)cpu|core|top\b", text):
            continue
        for part in re.split(r"[\n;,]", text):
            said = _said_of(part)
            if said is not None and not re.search(r"(?i)\bgpu\b|util", part):
                yield Busy(*said, Fact(said[1], context.quote(f"host.probes.{index}", part.strip())))


def _said_of(text: str) -> tuple[str, float] | None:
    """A process that words name, and the cores that it uses: `411 VLLM::APIServer 100 %`."""
    name, percent = _PROCESS.search(text), _PERCENT.search(text)
    return (name[0], float(percent[1]) / 100) if name and percent else None
