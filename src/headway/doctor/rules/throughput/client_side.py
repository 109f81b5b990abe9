"""The client is the limit: it sends too little at a time (T4), or measures something else than the server's speed (T20)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from statistics import median
from typing import Final

from headway.doctor.case import Case
from headway.doctor.facts.bench_result import SIGHTS as BENCH_LINES
from headway.doctor.facts.bench_result import BenchResult, bench_results
from headway.doctor.facts.complaint import complains_of
from headway.doctor.facts.load import LoadShape, shape_of
from headway.doctor.facts.metrics import span_of
from headway.doctor.facts.processor_use import busy_processes, gpu_use
from headway.doctor.facts.requests import QUEUE, RequestRow, medians
from headway.doctor.finding import Abstention, Fix, Found, Quote
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

_FEW: Final = 8.0  # running requests that leave a batch of any GPU nearly empty
_IDLE_GPU: Final = 0.70
_CLIENTS: Final = ("bench", "guidellm", "locust", "aiperf", "genai-perf", "client", "load", "wrk", "k6")
_ASKS: Final = re.compile(r"(?i)throughput|tok(?:en)?s?\s?/\s?s|吞吐|利用率|utili[sz]ation")
_SPREAD: Final = 0.05


def client_limited(case: Case) -> Found | Abstention | None:
    shape = shape_of(case.load)
    if shape is None or shape.waiting or shape.waiting_share > 0.1 or shape.running > _FEW or _many_at_times(case, shape):
        return None
    gpu, queue = gpu_use(case.context), _queue_seconds(case)
    idle_gpu = gpu is not None and gpu.value < _IDLE_GPU
    if gpu is not None and not idle_gpu:
        return None
    complaint = complains_of(case.context, "throughput")
    one_by_one = shape.running <= 2 or (shape.running <= 4 and _constant(case) and _ASKS.search(case.context.text("said")) is not None)
    if not complaint and not (idle_gpu and _steady(case)):
        return None
    if not idle_gpu and not one_by_one and queue is None:
        return Abstention(
            Words(
                f"whether the client limits the throughput: {shape.running:g} requests run and none waits, but the GPU's use is unknown"
                " (nvidia-smi --query-gpu=utilization.gpu --format=csv -l 5 under this load would tell)",
                f"是否由客户端限制吞吐：{shape.running:g} 个请求在运行、没有等待，但不知道 GPU 利用率"
                "（在此负载下运行 nvidia-smi --query-gpu=utilization.gpu --format=csv -l 5 即可判断）",
            )
        )
    more = max(16, int(shape.running) * 8)
    gpu_text = f", the GPU is busy {gpu.value:.0%} of the time" if gpu else ""
    gpu_text_zh = f"，GPU 只有 {gpu.value:.0%} 的时间在计算" if gpu else ""
    queue_text = f", queue time is {queue[0]:.3f} s" if queue else ""
    queue_text_zh = f"，排队时间 {queue[0]:.3f} 秒" if queue else ""
    each = f" Each request gets {shape.per_request:.1f} tokens/s." if shape.per_request else ""
    each_zh = f"每个请求得到 {shape.per_request:.1f} tokens/s。" if shape.per_request else ""
    return Found(
        cause=Words(
            f"The client sends too little at a time: {shape.running:g} request(s) run, none waits{queue_text}{gpu_text}.{each}"
            " The server is not the limit, so none of its flags can help.",
            f"客户端同时发送的请求太少：只有 {shape.running:g} 个请求在运行，没有等待{queue_text_zh}{gpu_text_zh}。{each_zh}瓶颈不在服务器，调整它的任何参数都没有用。",
        ),
        evidence=[shape.middle.quote, shape.last.quote, *([gpu.quote] if gpu else []), *([queue[1]] if queue else [])],
        fixes=[
            Fix(
                Words(
                    f"send requests in parallel from the client: raise its concurrency from {shape.running:g} to {more} and more (asyncio.gather, a thread pool, more workers)",
                    f"客户端并行发送请求：把并发数从 {shape.running:g} 提到 {more} 或更多（asyncio.gather、线程池、更多 worker）",
                )
            ),
            Fix(Words("reuse connections (one client object with keep-alive) instead of opening one per request", "复用连接（一个保持 keep-alive 的客户端对象），不要每个请求新建连接")),
        ],
        verify=Words(
            f"measure with --max-concurrency {max(1, int(shape.running))}, {max(1, int(shape.running)) * 2}, {max(1, int(shape.running)) * 4}, {more}: tokens/s grows with it while `Waiting` stays 0",
            f"分别以 --max-concurrency {max(1, int(shape.running))}、{max(1, int(shape.running)) * 2}、{max(1, int(shape.running)) * 4}、{more} 测试：tokens/s 随之增长，而 `Waiting` 保持 0",
        ),
        confidence=0.85 if idle_gpu and gpu is not None and gpu.value < 0.5 else 0.75 if idle_gpu else 0.6,
        weight="degraded",
    )


def benchmark_artefact(case: Case) -> Found | None:
    results = bench_results(case.log)
    busy = next((busy for busy in busy_processes(case.context) if busy.cores >= 0.95 and any(word in busy.name.lower() for word in _CLIENTS)), None)
    if busy is not None and "engine" not in busy.name.lower():
        return _artefact(
            Words(
                f"The measuring client ({busy.name}) uses {busy.cores:.0%} of one core: the result is the client's speed, not the server's.",
                f"测量用的客户端（{busy.name}）占满了一个核的 {busy.cores:.0%}：测到的是客户端的速度，而不是服务器的速度。",
            ),
            [busy.fact.quote],
            Fix(
                Words("run the client on other cores or another machine, or split it over several processes", "把客户端放到其他核或另一台机器上，或拆成多个进程"),
                _pinned(case, busy.name),
            ),
            0.75,
        )
    if not results:
        return _spread([BenchResult(values, {"output_rate": row.quote}) for row in case.requests if (values := _run_of(row))])
    shape = shape_of(case.load)
    hits = shape.hit_rate if shape else None
    if hits is not None and hits >= 0.5 and shape is not None:
        return _artefact(
            Words(
                f"The benchmark's prompts hit the prefix cache ({hits:.1%} of their tokens): most of the prefill is skipped, so the result is better than with real, different prompts.",
                f"基准测试的提示词命中了前缀缓存（{hits:.1%} 的 token）：大部分预填充被跳过，结果比真实的、互不相同的提示词要好。",
            ),
            [shape.last.quote, *results[-1].quotes.values()][:3],
            Fix(Words("measure with random prompts that share no prefix", "用没有公共前缀的随机提示词测量"), "--dataset-name random --random-prefix-len 0"),
            0.65,
        )
    return _spread(results)


def _run_of(row: RequestRow) -> dict[str, float]:
    """A row of a table of repeated runs; empty when it is none."""
    rate, again = row.number("tokens_per_s", "tok_per_s", "tok/s", "tokens/s", "output_tok_per_s", "out_tok_per_s"), row.number("run", "repeat", "round", "trial")
    named = {"output_rate": rate, "requests": row.number("requests", "num_prompts", "prompts"), "concurrency": row.number("concurrency", "max_concurrency")}
    return {name: value for name, value in named.items() if value is not None} if rate and again is not None else {}


def _pinned(case: Case, command: str) -> str | None:
    """The client's command on the last cores of the machine; None when either is unknown."""
    cpus = case.context.number("host.cpus")
    return f"taskset -c {int(cpus) - 2}-{int(cpus) - 1} {command}" if cpus and cpus >= 4 and " " in command else None


def _spread(runs: Sequence[BenchResult]) -> Found | None:
    """Repeated runs of the same size whose rates differ: the first one holds the warm-up."""
    rates = [(rate, run) for run in runs if (rate := run.get("output_rate")) and run.get("requests") == runs[0].get("requests")]
    rates = [(rate, run) for rate, run in rates if run.get("concurrency") == runs[0].get("concurrency")]
    if len(rates) < 2:
        return None
    values = [rate for rate, _ in rates]
    spread = (max(values) - min(values)) / median(values)
    if spread <= _SPREAD:
        return None
    shown = ", ".join(f"{value:.1f}" for value in values[:5])
    first_slow = values[0] == min(values)
    why = " The first run is the slowest: it holds compilation and an empty cache." if first_slow else ""
    why_zh = "第一次最慢：它包含了编译和空缓存。" if first_slow else ""
    return _artefact(
        Words(
            f"{len(values)} runs of the same benchmark gave {shown} tokens/s, a spread of {spread:.0%}: a difference below that says nothing.{why}",
            f"同一基准测试的 {len(values)} 次结果为 {shown} tokens/s，离散度 {spread:.0%}：小于它的差异没有意义。{why_zh}",
        ),
        [run.quotes["output_rate"] for _, run in rates][:4],
        Fix(
            Words("leave the warm-up out (a tenth of the requests), then repeat at least three times and compare medians", "排除预热（请求数的十分之一），再至少重复三次并比较中位数"),
            f"--num-warmups {max(1, int((runs[0].get('requests') or 10) // 10))}",
        ),
        0.6 if first_slow or spread > 0.15 else 0.5,
    )


def _artefact(cause: Words, evidence: list[Quote], fix: Fix, confidence: float) -> Found:
    return Found(
        cause=cause,
        evidence=evidence,
        fixes=[fix],
        verify=Words("repeat the measurement three times: the spread is below 5 %", "重复测量三次：离散度低于 5%"),
        confidence=confidence,
        weight="degraded",
    )


def _steady(case: Case) -> bool:
    """A client that sends the next request when one is answered: the batch hardly changes and is never empty. Light
    traffic of many users looks different, and is no fault."""
    counts = [sample.running for sample in case.load if sample.running is not None]
    return len(counts) >= 3 and min(counts) >= 1 and max(counts) - min(counts) <= 1


def _constant(case: Case) -> bool:
    counts = [sample.running for sample in case.load if sample.running is not None]
    return len(counts) >= 3 and min(counts) == max(counts)


def _many_at_times(case: Case, shape: LoadShape) -> bool:
    """Whether the batch is large now and then: bursts are no empty server."""
    return any((sample.running or 0) > 2 * _FEW for sample in case.load) and shape.running > 2


def _queue_seconds(case: Case) -> tuple[float, Quote] | None:
    rows = case.requests
    value = medians(rows, *QUEUE) if rows else None
    if value is not None:
        return (value, rows[len(rows) // 2].quote) if value < 0.1 else None
    span = span_of(case.context)
    mean = span.mean("request_queue_time_seconds") if span else None
    return (mean, span.quote) if span and mean is not None and mean < 0.1 else None


RULES: Final = (
    Rule(
        id="T4",
        proof="live",
        title=Words("The client sends too little at a time", "客户端同时发送的请求太少"),
        symptoms=Words("few requests run, none waits, the GPU idles", "运行的请求很少，没有等待，GPU 空闲"),
        why=Words("decoding one sequence uses a fraction of the device; speed comes from many at once", "单个序列的解码只用到设备的一小部分；速度来自同时处理很多序列"),
        needs=Words("running, waiting, queue time, GPU use", "运行数、等待数、排队时间、GPU 利用率"),
        remedy=Words("send in parallel, more client concurrency, reuse connections", "并行发送，提高客户端并发，复用连接"),
        check=Words("tokens/s grows with concurrency 1, 2, 4, ...", "并发为 1、2、4… 时 tokens/s 随之增长"),
        judge=client_limited,
    ),
    Rule(
        id="T20",
        title=Words("The benchmark measures something else", "基准测试测到的是别的东西"),
        symptoms=Words("repeated runs differ, prefix hits in a benchmark, a client at 100 % of a core", "重复测试结果不一、基准测试中出现前缀命中、客户端占满一个核"),
        why=Words("warm-up, cached prompts or the client itself are part of the result", "结果里混入了预热、缓存的提示词或客户端自身的开销"),
        needs=Words("at least three results, the prefix cache hit rate, the client's CPU use", "至少三次结果、前缀缓存命中率、客户端的 CPU 使用率"),
        remedy=Words("random prompts, warm-up excluded, client on other cores", "随机提示词、排除预热、客户端使用其他核"),
        check=Words("three repetitions with a spread below 5 %", "重复三次，离散度低于 5%"),
        judge=benchmark_artefact,
        sees=BENCH_LINES,
    ),
)
