"""Memory that looks like a leak: a prefix cache that fills, or resident memory that really grows (O20)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from headway.doctor.case import Case
from headway.doctor.facts.complaint import complains_of
from headway.doctor.facts.metrics import Scrape, quote_metrics, scrapes_of
from headway.doctor.finding import Fix, Found, Quote
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

_FULL: Final = 0.9
_FLAT: Final = 0.05
_SAMPLES: Final = 3
_LEAST_HOURS: Final = 0.05  # seconds of flat or growing memory say nothing
_RESIDENT: Final = ("process_resident_memory_bytes", "resident_memory_bytes", "rss_bytes", "rss", "memory_rss_bytes")
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?) ?(GiB|GB|G|MiB|MB|M)\b")
_UNITS: Final = {"G": 1.0, "M": 2**-10}
_USAGE: Final = ("kv_cache_usage_perc", "gpu_cache_usage_perc", "cpu_kv_cache_usage_perc", "prefix_cache_usage", "token_usage")


@dataclass(frozen=True, slots=True)
class Growth:
    """Resident GiB and cache usage (0 to 1), first and last sample; `steady`: it grew in nearly every interval."""

    first: float
    last: float
    usage_first: float | None
    usage_last: float | None
    hours: float | None
    steady: bool
    quotes: tuple[Quote, ...]


def growth_of(case: Case) -> Growth | None:
    """From scraped metrics, else from probes that name resident memory several times."""
    return _scraped(case) or _probed(case)


def _probed(case: Case) -> Growth | None:
    usage = [sample.usage for sample in case.load if sample.usage is not None]
    sizes: list[float] = []
    quotes = []
    for index, probe in enumerate(case.context.items("host.probes")):
        if re.search(r"(?i)\brss\b|resident", str(probe)):
            sizes += [float(found[1]) * _UNITS[found[2][0].upper()] for found in _SIZE.finditer(str(probe))]
            quotes.append(case.context.quote(f"host.probes.{index}"))
    if len(sizes) < 2:
        return None
    steady = all(after > before for before, after in pairwise(sizes))
    return Growth(sizes[0], sizes[-1], usage[0] if usage else None, usage[-1] if usage else None, None, steady, tuple(quotes))


def _scraped(case: Case) -> Growth | None:
    scrapes = [(scrape, size) for scrape in scrapes_of(case.context) if (size := _resident(scrape)) is not None]
    if len(scrapes) < _SAMPLES:
        return None
    usage = [value for scrape, _ in scrapes if (value := scrape.highest(*_USAGE)) is not None]
    steps = [after - before for (_, before), (_, after) in pairwise(scrapes)]
    (first, first_size), (last, last_size) = scrapes[0], scrapes[-1]
    hours = (last.t - first.t) / 3600 if first.t is not None and last.t is not None and last.t > first.t else None
    quotes = tuple(quote_metrics(case.context, scrape, *_RESIDENT, *_USAGE) for scrape in (first, last))
    return Growth(
        first_size,
        last_size,
        usage[0] if usage else None,
        usage[-1] if usage else None,
        hours,
        sum(step > 0 for step in steps) >= 0.8 * len(steps),
        quotes,
    )


def _resident(scrape: Scrape) -> float | None:
    value = scrape.total(*_RESIDENT)
    return value / 2**30 if value and value > 2**20 else scrape.total("rss_gib", "resident_gib")


def leak_or_cache(case: Case) -> Found | None:
    growth = growth_of(case)
    if growth is None or (growth.hours is not None and growth.hours < _LEAST_HOURS):
        return None
    rise = growth.last / growth.first - 1 if growth.first else 0.0
    over = f" in {growth.hours:.1f} hours" if growth.hours else ""
    over_zh = f"{growth.hours:.1f} 小时内" if growth.hours else ""
    complained = complains_of(case.context, "growing memory")
    if abs(rise) <= _FLAT:
        full = growth.usage_last is not None and growth.usage_last >= _FULL
        filling = growth.usage_last is not None and growth.usage_first is not None and growth.usage_last > growth.usage_first + 0.2
        if not (full or filling):
            return None
        return Found(
            cause=Words(
                f"No leak: resident memory is flat ({growth.first:.2f} -> {growth.last:.2f} GiB{over}). What fills is the KV cache, {100 * (growth.usage_first or 0):.0f} % ->"
                f" {100 * (growth.usage_last or 0):.0f} %: finished prefixes stay in it until their blocks are needed, which is what it is for. A restart would only empty it.",
                f"没有泄漏：常驻内存平稳（{over_zh} {growth.first:.2f} -> {growth.last:.2f} GiB）。增长的是 KV 缓存（{100 * (growth.usage_first or 0):.0f}% -> {100 * (growth.usage_last or 0):.0f}%）："
                "完成的前缀会留在其中，直到块被需要，这正是它的作用。重启只会清空它。",
            ),
            evidence=growth.quotes,
            fixes=[
                Fix(
                    Words(
                        f"nothing to change while resident memory stays flat at {growth.last:.2f} GiB: cached prefixes are evicted when new requests need their blocks",
                        f"常驻内存平稳在 {growth.last:.2f} GiB 时无需修改：新请求需要块时会淘汰缓存的前缀",
                    )
                )
            ],
            verify=Words(
                "`curl -s localhost:8000/metrics | grep process_resident_memory_bytes` over an hour of constant load: the value stays flat",
                "恒定负载下一小时内执行 `curl -s localhost:8000/metrics | grep process_resident_memory_bytes`：数值平稳",
            ),
            confidence=0.8 if complained else 0.4,
            weight="remark",
        )
    if rise < 0.1 or not growth.steady:
        return None
    return Found(
        cause=Words(
            f"Resident memory really grows: {growth.first:.2f} -> {growth.last:.2f} GiB{over} ({100 * rise:.0f} %), in nearly every interval. The KV cache is allocated at start, so it is not the cause.",
            f"常驻内存确实在增长：{over_zh} {growth.first:.2f} -> {growth.last:.2f} GiB（{100 * rise:.0f}%），几乎每个间隔都在涨。KV 缓存在启动时就已分配，不是原因。",
        ),
        evidence=growth.quotes,
        fixes=[
            Fix(
                Words("take a heap profile of the process that grows, and report it with the version", "对增长的进程做堆分析，并附版本号上报"),
                "memray attach --aggregate $(pgrep -f -o 'api_server|vllm serve|headway serve')",
            )
        ],
        verify=Words(
            "`ps -o rss= -p PID` of each process over an hour of constant load: the one that grows is the cause",
            "恒定负载下一小时观察各进程的 RSS：增长的那个就是原因",
        ),
        confidence=0.7 if rise > 0.25 or complained else 0.5,
        weight="degraded",
        title=Words("Resident memory grows", "常驻内存持续增长"),
    )


RULES: Final = (
    Rule(
        id="O20",
        title=Words('The "leak" is a cache that fills', "“泄漏”其实是缓存被填满"),
        symptoms=Words("the prefix cache fills to 100 % while resident memory is flat", "前缀缓存涨到 100%，而常驻内存平稳"),
        why=Words("cached prefixes stay until their blocks are needed", "缓存的前缀会保留到块被需要为止"),
        needs=Words("resident memory against requests and cache usage over time", "常驻内存随请求和缓存使用的变化"),
        remedy=Words("none when resident memory is flat, else a heap profile", "常驻内存平稳则无需处理，否则做堆分析"),
        check=Words("resident memory over an hour of constant load", "恒定负载下一小时的常驻内存"),
        judge=leak_or_cache,
    ),
)
