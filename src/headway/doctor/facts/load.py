"""Load over time: one kind of sample, whether it came from statistics lines of a log or from scraped metrics."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from headway.doctor.evidence.context import Context
from headway.doctor.evidence.log.line import Hit
from headway.doctor.evidence.log.log import Log
from headway.doctor.evidence.sight import sight
from headway.doctor.finding import Quote

STATISTICS: Final = sight(
    "Avg prompt throughput",
    pattern=r"Avg prompt throughput: (?P<prompt>[\d.]+) tokens/s, Avg generation throughput: (?P<generation>[\d.]+) tokens/s,"
    r" Running: (?P<running>\d+) reqs?,(?: Swapped: \d+ reqs?,)? (?:Waiting|Pending): (?P<waiting>\d+) reqs?,"
    r"(?: Preemptions: (?P<preemptions>\d+),)?"
    r" (?:GPU|CPU)? ?KV cache usage: (?P<usage>[\d.]+)%(?:.*?Prefix cache hit rate: (?:GPU: )?(?P<hits>[\d.]+)%)?",
    series=True,
)
SIGHTS: Final = (STATISTICS,)


@dataclass(frozen=True, slots=True)
class LoadSample:
    """`t`: seconds, from any zero; None when unknown. Rates in tokens/s; `usage` and `hit_rate` from 0 to 1; None = not
    stated. `preemptions`: the counter's value, not its growth."""

    t: float | None
    running: float | None
    waiting: float | None
    usage: float | None
    prompt_rate: float | None
    generation_rate: float | None
    hit_rate: float | None
    preemptions: float | None
    quote: Quote


def load_of(log: Log, context: Context) -> Sequence[LoadSample]:
    """The context's metrics when it has several samples of them, else the log's lines, else one sample."""
    scraped = _from_metrics(context)
    printed = [_from_line(hit) for hit in log.hits(STATISTICS)]
    return scraped if len(scraped) > 1 or not printed else printed


def clock_seconds(text: str) -> float | None:
    """Seconds within a month of `11-29 09:14:03`, `2026-11-29T09:14:03.5Z`, `09:14:03`; None when there is no time."""
    found = re.search(r"(?:(\d\d)[ T])?(\d\d):(\d\d):(\d\d(?:[.,]\d+)?)", text)
    if found is None:
        return None
    day = int(found[1]) if found[1] else 0
    return ((day * 24 + int(found[2])) * 60 + int(found[3])) * 60 + float(found[4].replace(",", "."))


def _from_line(hit: Hit) -> LoadSample:
    def number(group: str, scale: float = 1.0) -> float | None:
        return hit.number(group) * scale if hit[group] else None

    return LoadSample(
        clock_seconds(hit.line.clock),
        number("running"),
        number("waiting"),
        number("usage", 0.01),
        number("prompt"),
        number("generation"),
        number("hits", 0.01),
        number("preemptions"),
        hit.quote(),
    )


def metric(sample: Mapping[str, Any], *names: str) -> float | None:
    """The first of these metrics in a sample, labels and `vllm:`/`headway:`/`vllm_` prefixes disregarded; several label
    sets are added up."""
    for name in names:
        values = [
            float(value)
            for key, value in sample.items()
            if re.sub(r"^(?:vllm|headway)[:_]", "", key.split("{")[0]) == name and isinstance(value, (int, float)) and not isinstance(value, bool)
        ]
        if values:
            return sum(values)
    return None


def _from_metrics(context: Context) -> list[LoadSample]:
    samples: list[LoadSample] = []
    before: Mapping[str, Any] | None = None
    for index, sample in enumerate(context.items("metrics")):
        if not isinstance(sample, Mapping):
            continue
        running, waiting = metric(sample, "num_requests_running"), metric(sample, "num_requests_waiting")
        usage = metric(sample, "kv_cache_usage_perc", "gpu_cache_usage_perc", "cpu_kv_cache_usage_perc")
        preemptions = metric(sample, "num_preemptions_total", "num_preemptions")
        generated = _rate(before, sample, "generation_tokens_total", "generation_tokens")
        prompted = _rate(before, sample, "prompt_tokens_total", "prompt_tokens")
        queried = _grown(before, sample, "prefix_cache_queries_total", "prefix_cache_queries")
        hits = _grown(before, sample, "prefix_cache_hits_total", "prefix_cache_hits")
        hit_rate = hits / queried if queried and hits is not None else metric(sample, "gpu_prefix_cache_hit_rate", "prefix_cache_hit_rate")
        before = sample
        if all(value is None for value in (running, waiting, usage, preemptions, generated)):
            continue
        time = sample.get("t")
        t = float(time) if isinstance(time, (int, float)) else None
        quote = context.quote(f"metrics.{index}")
        samples.append(LoadSample(t, running, waiting, usage, prompted, generated, hit_rate, preemptions, quote))
    return samples


def _grown(before: Mapping[str, Any] | None, now: Mapping[str, Any], *names: str) -> float | None:
    """Growth of a counter since the sample before; a counter that fell was restarted and grew from zero."""
    if (value := metric(now, *names)) is None or before is None or (old := metric(before, *names)) is None:
        return None
    return value - old if value >= old else value


def _rate(before: Mapping[str, Any] | None, now: Mapping[str, Any], *names: str) -> float | None:
    grown = _grown(before, now, *names)
    if grown is None or before is None:
        return None
    start, end = before.get("t"), now.get("t")
    if not isinstance(start, (int, float)) or not isinstance(end, (int, float)) or end <= start:
        return None
    return grown / (end - start)
