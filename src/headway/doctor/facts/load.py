"""Load over time: one kind of sample, whether it came from statistics lines of a log or from scraped metrics."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise, repeat
from statistics import median, median_low
from typing import Final

from headway.doctor.evidence.context import Context
from headway.doctor.evidence.log.line import Hit
from headway.doctor.evidence.log.log import Log
from headway.doctor.facts import load_lines
from headway.doctor.facts.load_lines import STATISTICS
from headway.doctor.facts.metrics import Scrape, grown, quote_metrics, scrapes_of
from headway.doctor.finding import Quote

SIGHTS: Final = load_lines.SIGHTS

_RUNNING: Final = ("num_requests_running", "num_running_reqs", "requests_processing", "num_running_requests")
_WAITING: Final = ("num_requests_waiting", "num_queue_reqs", "requests_deferred", "num_waiting_requests")
_USAGE: Final = ("kv_cache_usage_perc", "gpu_cache_usage_perc", "cpu_kv_cache_usage_perc", "token_usage", "kv_cache_usage_ratio", "kv_cache_utilization")
_PREEMPTED: Final = ("num_preemptions", "num_retracted_requests", "num_retracted_reqs")
_GENERATED: Final = ("generation_tokens", "tokens_predicted")
_PROMPTED: Final = ("prompt_tokens",)


@dataclass(frozen=True, slots=True)
class LoadSample:
    """`t`: seconds, from any zero; None when unknown. `running`, `waiting`: requests over all engines of the sample
    (`engines` of them). Rates in tokens/s; `usage` and `hit_rate` from 0 to 1; None = not stated. `preemptions`: the
    counter's value, not its growth; from lines of a log the sum so far."""

    t: float | None
    running: float | None
    waiting: float | None
    usage: float | None
    prompt_rate: float | None
    generation_rate: float | None
    hit_rate: float | None
    preemptions: float | None
    source: Hit | Quote
    engines: int = 1

    @property
    def quote(self) -> Quote:
        """Made when it is asked for: there may be thousands of samples."""
        return self.source.quote() if isinstance(self.source, Hit) else self.source

    @property
    def idle(self) -> bool:
        return not self.running and not self.waiting


@dataclass(frozen=True, slots=True)
class LoadShape:
    """The busy samples of a load as medians (counts of requests as whole numbers); `samples` of them, over `seconds` (None when unknown).

    `waiting_share`: share of busy samples in which somebody waits. `rising`: the queue grew from the first third to the
    last. `per_request`: tokens/s of one running request.
    """

    samples: int
    engines: int
    running: float
    waiting: float
    usage: float | None
    prompt_rate: float | None
    generation_rate: float | None
    hit_rate: float | None
    waiting_share: float
    rising: bool
    seconds: float | None
    middle: LoadSample
    last: LoadSample

    @property
    def per_request(self) -> float | None:
        return self.generation_rate / self.running if self.generation_rate is not None and self.running else None


def load_of(log: Log, context: Context) -> Sequence[LoadSample]:
    """The context's metrics when several samples of them count requests, else the log's lines, else what there is."""
    scraped = _from_metrics(context)
    if len(scraped) > 1 and any(sample.running is not None for sample in scraped):
        return scraped
    lines = _from_log(log)
    lost = preempted(scraped)
    return [*lines[:-1], replace(lines[-1], preemptions=lost)] if lines and lost else lines or scraped


def shape_of(samples: Sequence[LoadSample]) -> LoadShape | None:
    """None when the server was idle throughout or said nothing about its load."""
    busy = [sample for sample in samples if sample.running is not None and not sample.idle]
    if not busy:
        return None
    waiting = [sample.waiting or 0.0 for sample in busy]
    third = max(1, len(busy) // 3)
    times = [sample.t for sample in busy if sample.t is not None]
    middle = sorted(busy, key=lambda sample: (sample.running or 0.0, sample.waiting or 0.0))[len(busy) // 2]
    return LoadShape(
        len(busy),
        max(sample.engines for sample in busy),
        median_low(sample.running or 0.0 for sample in busy),
        median_low(waiting),
        _median(busy, lambda sample: sample.usage),
        _median(busy, lambda sample: sample.prompt_rate),
        _median(busy, lambda sample: sample.generation_rate),
        _median(busy, lambda sample: sample.hit_rate),
        sum(1 for value in waiting if value) / len(waiting),
        len(busy) > 2 and sum(waiting[-third:]) > sum(waiting[:third]),
        times[-1] - times[0] if len(times) > 1 and times[-1] > times[0] else None,
        middle,
        busy[-1],
    )


def preempted(samples: Sequence[LoadSample]) -> float:
    """Growth of the counter over the samples; a counter that fell was restarted."""
    values = [sample.preemptions for sample in samples if sample.preemptions is not None]
    return sum(grown(before, now) or 0.0 for before, now in pairwise(values))


def clock_seconds(text: str) -> float | None:
    """Seconds within a month of `11-29 09:14:03`, `2026-11-29T09:14:03.5Z`, `09:14:03`; None when there is no time."""
    found = re.search(r"(?:(\d\d)[ T])?(\d\d):(\d\d):(\d\d(?:[.,]\d+)?)", text)
    if found is None:
        return None
    day = int(found[1]) if found[1] else 0
    return ((day * 24 + int(found[2])) * 60 + int(found[3])) * 60 + float(found[4].replace(",", "."))


def _median(samples: Sequence[LoadSample], of: Callable[[LoadSample], float | None]) -> float | None:
    values = [value for sample in samples if (value := of(sample)) is not None]
    return median(values) if values else None


def _from_log(log: Log) -> list[LoadSample]:
    for seen, read in _READERS:
        if hits := log.hits(seen):
            return read(log, hits)
    return []


def _vllm(log: Log, hits: Sequence[Hit]) -> list[LoadSample]:
    old = log.last(load_lines.OLD_HITS)
    old_hits = old.number("hits") / 100 if old else None
    # a line tells the preemptions of its interval, and only if there were some
    total = accumulate(_number(hit, "preemptions") or 0.0 for hit in hits) if any(hit["preemptions"] for hit in hits) else repeat(None)
    return [
        LoadSample(
            clock_seconds(hit.line.clock),
            _number(hit, "running"),
            _number(hit, "waiting"),
            _number(hit, "usage", 0.01),
            _number(hit, "prompt"),
            _number(hit, "generation"),
            _number(hit, "hits", 0.01) if hit["hits"] else old_hits,
            preemptions,
            hit,
        )
        for hit, preemptions in zip(hits, total, strict=False)
    ]


def _sglang(log: Log, hits: Sequence[Hit]) -> list[LoadSample]:
    prefills = log.hits(load_lines.SGLANG_PREFILL)
    new, cached = (sum(hit.number(group) for hit in prefills) for group in ("new", "cached"))
    rates = [rate for hit in prefills if (rate := _number(hit, "prompt")) is not None]
    return [
        LoadSample(
            clock_seconds(hit.line.clock),
            _number(hit, "running"),
            _number(hit, "waiting"),
            _number(hit, "usage"),
            median(rates) if rates else None,
            _number(hit, "generation"),
            cached / (new + cached) if new + cached else None,
            None,
            hit,
        )
        for hit in hits
    ]


def _tensorrt(log: Log, hits: Sequence[Hit]) -> list[LoadSample]:
    samples: list[LoadSample] = []
    for hit in hits:
        seconds = hit.number("step") * (1e-3 if hit["unit"] == "ms" else 1.0)
        rate = hit.number("generated") / seconds if seconds > 0 else None
        prompt = hit.number("context") / seconds if seconds > 0 else None
        samples.append(LoadSample(None, _number(hit, "running"), _number(hit, "waiting"), None, prompt, rate, None, None, hit))
    return samples


def _llama(log: Log, hits: Sequence[Hit]) -> list[LoadSample]:
    prompts = [hit.number("rate") for hit in log.hits(load_lines.LLAMA_PROMPT)]
    prompt = median(prompts) if prompts else None
    return [
        LoadSample(clock_seconds(hit.line.clock), 1.0, None, None, prompt, hit.number("rate"), None, None, hit) for hit in hits
    ]


_READERS: Final = (
    (STATISTICS, _vllm),
    (load_lines.SGLANG_DECODE, _sglang),
    (load_lines.TENSORRT_STEP, _tensorrt),
    (load_lines.LLAMA_DECODE, _llama),
)


def _number(hit: Hit, group: str, scale: float = 1.0) -> float | None:
    return hit.number(group) * scale if hit[group] else None


def _from_metrics(context: Context) -> list[LoadSample]:
    samples: list[LoadSample] = []
    before: Scrape | None = None
    for scrape in scrapes_of(context):
        running, waiting, usage = scrape.total(*_RUNNING), scrape.total(*_WAITING), scrape.highest(*_USAGE)
        preemptions = scrape.total(*_PREEMPTED)
        generated = _rate(before, scrape, _GENERATED)
        hits = _growth(before, scrape, "prefix_cache_hits", "cached_tokens")
        queries = _growth(before, scrape, "prefix_cache_queries")
        hit_rate = hits / queries if queries and hits is not None else scrape.highest("gpu_prefix_cache_hit_rate", "prefix_cache_hit_rate", "cache_hit_rate")
        hit_rate = hit_rate if hit_rate is None or hit_rate >= 0 else None  # -1: nothing was looked up yet
        prompted, before = _rate(before, scrape, _PROMPTED), scrape
        if all(value is None for value in (running, waiting, usage, preemptions, generated)):
            continue
        if usage is not None and usage > 1.5:  # a percentage in spite of its name
            usage /= 100
        generated = scrape.total("gen_throughput", "avg_generation_throughput_toks_per_s") if generated is None else generated
        prompted = scrape.total("avg_prompt_throughput_toks_per_s") if prompted is None else prompted
        quote = quote_metrics(context, scrape, *_RUNNING, *_WAITING, *_USAGE, *_PREEMPTED, *_GENERATED)
        engines = max(1, len(scrape.series(*_RUNNING)))
        samples.append(LoadSample(scrape.t, running, waiting, usage, prompted, generated, hit_rate, preemptions, quote, engines))
    return samples


def _growth(before: Scrape | None, now: Scrape, *names: str) -> float | None:
    return None if before is None else grown(before.total(*names), now.total(*names))


def _rate(before: Scrape | None, now: Scrape, names: tuple[str, ...]) -> float | None:
    growth = _growth(before, now, *names)
    if growth == 0:  # however long it took
        return 0.0
    if growth is None or before is None or before.t is None or now.t is None or now.t <= before.t:
        return None
    return growth / (now.t - before.t)
