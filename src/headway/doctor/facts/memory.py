"""Memory as the log and the context state it, in GiB."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from headway.doctor.evidence.context import Context
from headway.doctor.evidence.log.line import Hit
from headway.doctor.evidence.log.log import Log
from headway.doctor.evidence.sight import Sight, sight
from headway.doctor.facts.fact import Fact
from headway.doctor.facts.launch import Launch
from headway.doctor.facts.metrics import scrapes_of

_GIB: Final = {"kib": 2**-20, "mib": 2**-10, "gib": 1.0, "tib": 2**10, "kb": 1e3 / 2**30, "mb": 1e6 / 2**30, "gb": 1e9 / 2**30, "b": 2**-30, "bytes": 2**-30}
SIZE: Final = r"-?\d[\d,]*(?:\.\d+)? ?(?:[KMGT]i?B|bytes|B)"

WEIGHTS: Final = sight(
    "Model loading took", "Loading model weights took", "model weights take", "Load weight end",
    pattern=rf"(?:Model loading took|[Ll]oading model weights took|model weights take|Load weight end\..*?mem usage=) ?(?P<size>{SIZE})",
)  # fmt: skip
KV_AVAILABLE: Final = sight(
    "Available KV cache memory", "reserved for KV Cache is", " kv_cache_size=",
    pattern=rf"(?:Available KV cache memory: |reserved for KV Cache is | kv_cache_size=)(?P<size>{SIZE})",
)
CAP: Final = sight(
    "x gpu_memory_utilization (", "on startup is less than desired", "total_gpu_memory=",
    pattern=rf"total_gpu_memory \((?P<total>{SIZE})\) x gpu_memory_utilization \((?P<share>[\d.]+)\)"
    rf"|total_gpu_memory=(?P<total2>{SIZE}) .*gpu_memory_utilization=(?P<share2>[\d.]+)"
    r"|\((?P<free>[\d.]+)/(?P<all>[\d.]+) GiB\) on startup is less than desired \w+ memory utilization \((?P<wanted>[\d.]+),",
)  # fmt: skip
PEAK: Final = sight(
    "activation peak memory takes", "torch peak memory increase",
    pattern=rf"(?:activation peak memory takes |torch peak memory increase: )(?P<size>{SIZE})",
)  # fmt: skip
KV_TOKENS: Final = sight("KV cache size:", pattern=r"(?P<device>GPU|CPU)? ?KV cache size: (?P<tokens>[\d,]+) tokens")
CONCURRENCY: Final = sight("Maximum concurrency", pattern=r"Maximum concurrency for (?P<length>[\d,]+) tokens per request: (?P<times>\d+(?:\.\d+)?)x")
OUT_OF_MEMORY: Final = sight(
    "OutOfMemoryError",
    "CUDA out of memory",
    "HIP out of memory",
    "error: out of memory",
    "CUDA runtime error",
    pattern=r"(?:OutOfMemoryError|(?:CUDA|HIP) out of memory|(?:CUDA|HIP) error: out of memory|CUDA runtime error in .*: out of memory)"
    rf"(?:.*?Tried to allocate (?P<asked>{SIZE}))?"
    rf"(?:.*?GPU (?P<gpu>\d+) has a total capacity of (?P<total>{SIZE}) of which (?P<free>{SIZE}) is free)?"
    rf"(?:.*?this process has (?P<own>{SIZE}) memory in use)?"
    rf"(?:.*?Of the allocated memory (?P<allocated>{SIZE}) is allocated by PyTorch)?"
    rf"(?:.*?(?<![\d,.])(?P<reserved>{SIZE}) is reserved by PyTorch but unallocated)?",
)
SIGHTS: Final[tuple[Sight, ...]] = (WEIGHTS, KV_AVAILABLE, CAP, PEAK, KV_TOKENS, CONCURRENCY, OUT_OF_MEMORY)


def gib(text: str) -> float:
    """`20.17 GiB`, `512 MiB`, `-1.2 GiB` as GiB. Raises ValueError on anything else."""
    found = re.fullmatch(r"\s*(-?\d[\d,]*(?:\.\d+)?) ?([A-Za-z]+)\s*", text)
    if found is None or found[2].lower() not in _GIB:
        raise ValueError(f"not a size: {text!r}")
    return float(found[1].replace(",", "")) * _GIB[found[2].lower()]


@dataclass(frozen=True, slots=True)
class MemoryFacts:
    """GiB. `per_worker`: process -> its `Available KV cache memory`. `utilization`: the cap as given, None if not.
    `peak`: activations as profiled."""

    total: Fact[float] | None
    utilization: Fact[float] | None
    weights: Fact[float] | None
    kv_available: Fact[float] | None
    per_worker: tuple[tuple[str, Fact[float]], ...]
    kv_tokens: Fact[int] | None
    concurrency: Fact[float] | None
    peak: Fact[float] | None = None


def memory_of(log: Log, context: Context, launch: Launch) -> MemoryFacts:
    available = log.hits(KV_AVAILABLE)
    tokens, times = log.last(KV_TOKENS), log.last(CONCURRENCY)
    utilization = launch.fact("gpu_memory_utilization")
    return MemoryFacts(
        total=_total(log, context),
        utilization=Fact(float(utilization.value), utilization.quote) if utilization and _is_number(utilization.value) else _share(log),
        weights=_weights(log.last(WEIGHTS)) or _from_context(context, "model.weights_gib"),
        kv_available=_size(available[-1]) if available else None,
        per_worker=tuple((hit.line.process, Fact(gib(hit["size"]), hit.quote())) for hit in available),
        kv_tokens=Fact(int(tokens.number("tokens")), tokens.quote()) if tokens else _kv_tokens_of_scrapes(context),
        concurrency=Fact(times.number("times"), times.quote()) if times else None,
        peak=_size(log.last(PEAK)),
    )


def _kv_tokens_of_scrapes(context: Context) -> Fact[int] | None:
    """Blocks x tokens of a block, as vLLM's `cache_config_info` labels them; of several engines the first."""
    for scrape in scrapes_of(context):
        for one in scrape.series("cache_config_info"):
            blocks, size = one.labels.get("num_gpu_blocks", ""), one.labels.get("block_size", "")
            if blocks.isdecimal() and size.isdecimal() and int(blocks) * int(size) > 0:
                return Fact(int(blocks) * int(size), context.quote(f"metrics.{scrape.index}", f"cache_config_info num_gpu_blocks={blocks} block_size={size}"))
    return None


def _size(hit: Hit | None) -> Fact[float] | None:
    return Fact(gib(hit["size"]), hit.quote()) if hit else None


def _weights(hit: Hit | None) -> Fact[float] | None:
    """Engines print GiB here and some call them GB."""
    return Fact(gib(re.sub(r"(?<=\d) ?GB$", " GiB", hit["size"])), hit.quote()) if hit else None


def _share(log: Log) -> Fact[float] | None:
    hit = log.first(CAP)
    return Fact(hit.number(next(name for name in ("share", "share2", "wanted") if hit[name])), hit.quote()) if hit else None


def _total(log: Log, context: Context) -> Fact[float] | None:
    for hit in log.hits(CAP):
        printed = hit["total"] or hit["total2"]
        return Fact(gib(printed) if printed else hit.number("all"), hit.quote())
    for hit in log.hits(OUT_OF_MEMORY):
        if hit["total"]:
            return Fact(gib(hit["total"]), hit.quote())
    total = _from_context(context, "host.gpus.0.memory_gib")
    return total if total is not None and total.value > 0 else None


def _from_context(context: Context, path: str) -> Fact[float] | None:
    value = context.number(path)
    return None if value is None else Fact(value, context.quote(path))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
