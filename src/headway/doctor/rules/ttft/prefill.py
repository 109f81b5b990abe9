"""The prompt itself takes the time: its length (F3), or too many prompts in one step (F9)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from statistics import correlation, linear_regression, median
from typing import Final

from headway.doctor.case import Case
from headway.doctor.facts.complaint import complains_of
from headway.doctor.facts.first_token import first_token_of, total_of
from headway.doctor.facts.load import shape_of
from headway.doctor.facts.metrics import span_of
from headway.doctor.facts.processor_use import known_gpu, on_cpu
from headway.doctor.facts.requests import PREFILL, PROMPT_TOKENS, QUEUE, RequestRow
from headway.doctor.facts.step_budget import chosen_small
from headway.doctor.finding import Fix, Found, Quote
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

_SLOW: Final = 1.0
_LONG_PROMPT: Final = 256  # tokens; a shorter one is computed in a step or two, whatever else takes the time
_STRAIGHT: Final = 0.95
_HUGE_BUDGET: Final = 16384


def prompt_takes_long(case: Case) -> Found | None:
    return _by_rows(case) or _by_histograms(case)


def _by_rows(case: Case) -> Found | None:
    rows = [row for row in case.requests if row.number(*PROMPT_TOKENS) and (total_of(row) or 0) > 0]
    if len(rows) < 3 or max(total_of(row) or 0.0 for row in rows) < _SLOW:
        return None
    queue = median(row.seconds(*QUEUE) or 0.0 for row in rows)
    totals = [total_of(row) or 0.0 for row in rows]
    if queue > 0.2 * median(totals):
        return None
    lengths = [row.number(*PROMPT_TOKENS) or 0.0 for row in rows]
    varied = max(lengths) >= 3 * min(lengths)
    if max(lengths) < _LONG_PROMPT:
        return None
    if varied and min(totals) == max(totals):
        return None
    if correlation(lengths, totals) < _STRAIGHT if varied else not _alone_and_even(case, rows):
        return None
    rate = _tokens_per_second(rows, lengths, totals, varied)
    if rate is None:
        return None
    slow = max(rows, key=lambda row: total_of(row) or 0.0)
    straight = f"grows in proportion to the prompt ({min(lengths):,.0f} to {max(lengths):,.0f} tokens)" if varied else f"is the prefill of {median(lengths):,.0f} tokens"
    straight_zh = f"与提示词长度成正比（{min(lengths):,.0f} 到 {max(lengths):,.0f} token）" if varied else f"就是 {median(lengths):,.0f} 个 token 的预填充"
    return _found(case, rate, f"The first token {straight}, up to {total_of(slow) or 0:.1f} s", f"首 token 时间{straight_zh}，最长 {total_of(slow) or 0:.1f} 秒", queue, [rows[0].quote, slow.quote], 0.92 if varied else 0.75)


def _alone_and_even(case: Case, rows: Sequence[RequestRow]) -> bool:
    """With one prompt length only: nobody else computes, and each token costs about the same in every row."""
    shape = shape_of(case.load)
    costs = [prefill / (row.number(*PROMPT_TOKENS) or 1.0) for row in rows if (prefill := row.seconds(*PREFILL))]
    return (shape is None or shape.running <= 8) and bool(costs) and max(costs) < 2 * min(costs)


def _tokens_per_second(rows: Sequence[RequestRow], lengths: Sequence[float], totals: Sequence[float], varied: bool) -> float | None:
    """The slope of time over length; with one length only, tokens over its prefill time."""
    if varied:
        slope = linear_regression(lengths, totals).slope
        return 1 / slope if slope > 0 else None
    prefill = [value for row in rows if (value := row.seconds(*PREFILL)) is not None]
    if not prefill or median(prefill) < 0.7 * median(totals):
        return None
    return median(lengths) / median(prefill)


def _by_histograms(case: Case) -> Found | None:
    if case.requests:
        return None
    seen, span = first_token_of((), case.context), span_of(case.context)
    if seen is None or span is None or seen.prefill is None or seen.total is None or seen.total < _SLOW:
        return None
    prompt = span.mean("request_prompt_tokens")
    if seen.prefill < 0.6 * seen.total or prompt is None or prompt < 512 or seen.count < 3:
        return None
    bothers = complains_of(case.context, "first token") or seen.total >= 5
    return _found(
        case, prompt / seen.prefill, f"The first token takes {seen.total:.2f} s on average, of which {seen.prefill:.2f} s is the prefill of {prompt:,.0f} prompt tokens",
        f"首 token 平均 {seen.total:.2f} 秒，其中 {seen.prefill:.2f} 秒是 {prompt:,.0f} 个提示 token 的预填充", seen.queue or 0.0, list(seen.quotes), 0.75 if bothers else 0.5,
    )  # fmt: skip


def _found(case: Case, rate: float, en: str, zh: str, queue: float, evidence: list[Quote], confidence: float) -> Found:
    roof, roof_zh = _arithmetic(case, rate)
    fixes = [
        Fix(
            Words(
                "reuse prefixes: put the part that all prompts share first and word for word the same, so that only the rest is computed",
                "复用前缀：把各提示词共有的部分逐字相同地放在最前面，只需计算其余部分",
            )
        ),
        Fix(Words(f"send shorter prompts: each 1,000 tokens less saves {1000 / rate:.2f} s", f"缩短提示词：每减少 1,000 个 token 可省 {1000 / rate:.2f} 秒")),
    ]
    if not on_cpu(case.log, case.context, case.device):
        tp = int(case.launch.number("tensor_parallel_size") or 1)
        fixes.append(Fix(Words(f"more arithmetic for one prompt: split the layers over {tp * 2} GPUs", f"让单个提示词用上更多算力：把每层切分到 {tp * 2} 张 GPU"), f"--tensor-parallel-size {tp * 2}"))
        fixes.append(Fix(Words("faster precision: an FP8 checkpoint on GPUs of capability 8.9 and later", "更快的精度：在算力 8.9 及以上的 GPU 上使用 FP8 模型")))
    return Found(
        cause=Words(
            f"{en}: {rate:,.0f} prompt tokens per second{roof}. Queue time is {queue:.2f} s, so the server computes all the while; more slots or replicas do not shorten one prompt.",
            f"{zh}：每秒 {rate:,.0f} 个提示 token{roof_zh}。排队时间为 {queue:.2f} 秒，服务器一直在计算；增加槽位或副本不会缩短单个提示词。",
        ),
        evidence=evidence,
        fixes=fixes,
        verify=Words(
            f"send prompts of 1,000, 10,000 and 50,000 tokens one at a time: the slope is above {rate:,.0f} tokens/s; vllm:prefix_cache_hits_total grows on the second request",
            f"逐个发送 1,000、10,000、50,000 token 的提示词：斜率高于每秒 {rate:,.0f} token；第二个请求时 vllm:prefix_cache_hits_total 增长",
        ),
        confidence=confidence,
        weight="degraded",
        explains=("T11", "T4") if chosen_small(case.launch) and not complains_of(case.context, "first token") else ("T11", "T10", "T4"),
    )


def _arithmetic(case: Case, rate: float) -> tuple[str, str]:
    """2 x parameters x tokens/s, against the card's table where the card is known."""
    found = re.search(r"(?<![\d.])(\d+(?:\.\d+)?)[Bb](?![a-z])", case.launch.model)
    if found is None or "a3b" in case.launch.model.lower():
        return "", ""
    used = 2 * float(found[1]) * 1e9 * rate / 1e12
    gpu = known_gpu(case.context)
    roof = gpu.arithmetic("bfloat16") if gpu else None
    of = f", {used * 1e12 / roof:.0%} of the card's" if roof else ""
    of_zh = f"，是该卡的 {used * 1e12 / roof:.0%}" if roof else ""
    return f" ({used:.0f} TFLOP/s for {found[1]}B parameters{of})", f"（{found[1]}B 参数，即 {used:.0f} TFLOP/s{of_zh}）"


def prefills_mixed(case: Case) -> Found | None:
    budget = case.launch.fact("max_num_batched_tokens")
    if budget is None or not budget.value.isdigit() or int(budget.value) < _HUGE_BUDGET:
        return None
    rows = [row for row in case.requests if row.number(*PROMPT_TOKENS) and row.seconds(*PREFILL)]
    if len(rows) < 4:
        return None
    lengths, prefills = [row.number(*PROMPT_TOKENS) or 0.0 for row in rows], [row.seconds(*PREFILL) or 0.0 for row in rows]
    best = min(prefill / length for prefill, length in zip(prefills, lengths, strict=True))
    usual = median(prefill / length for prefill, length in zip(prefills, lengths, strict=True))
    shape = shape_of(case.load)
    if shape is not None and shape.running > 2 and shape.prompt_rate:
        best = min(best, 1 / shape.prompt_rate)  # what the server computes in all while they wait for each other
    at_once = int(int(budget.value) // median(lengths))
    if median(prefills) < 0.5 or usual < 3 * best or at_once < 4 or max(lengths) > 8 * median(lengths):
        return None
    return Found(
        cause=Words(
            f"--max-num-batched-tokens {budget.value} lets one step take about {at_once} prompts of {median(lengths):,.0f} tokens: each waits for all of them,"
            f" so its prefill takes {median(prefills):.1f} s, {usual / best:.0f} x what its own tokens cost.",
            f"--max-num-batched-tokens {budget.value} 使一步约能装下 {at_once} 个 {median(lengths):,.0f} token 的提示词：每个都要等全部算完，预填充耗时 {median(prefills):.1f} 秒，是它自身 token 所需时间的 {usual / best:.0f} 倍。",
        ),
        evidence=[budget.quote, rows[len(rows) // 2].quote],
        fixes=[Fix(Words(f"shorter steps: {budget.value} -> 8192", f"缩短每一步：{budget.value} -> 8192"), "--max-num-batched-tokens 8192")],
        verify=Words("the same load afterwards: prefill time per request falls; compare per-phase times of one request", "之后用相同负载：每个请求的预填充时间下降；对比单个请求各阶段耗时"),
        confidence=0.7,
        weight="degraded",
        explains=("T11",),
    )


RULES: Final = (
    Rule(
        id="F3",
        title=Words("The prefill of the prompt takes the time", "时间花在提示词的预填充上"),
        symptoms=Words("time to first token proportional to prompt tokens, alone on the server", "服务器上只有该请求时，首 token 时间与提示 token 数成正比"),
        why=Words("each prompt token costs 2 x parameters operations", "每个提示 token 需要 2 x 参数量 次运算"),
        needs=Words("prompt length and time of several requests, or the histograms", "若干请求的提示词长度与耗时，或直方图"),
        remedy=Words("prefix reuse, shorter prompts, tensor split, faster precision", "复用前缀、缩短提示词、张量切分、更快的精度"),
        check=Words("the slope of time over prompt tokens", "耗时随提示 token 数变化的斜率"),
        judge=prompt_takes_long,
    ),
    Rule(
        id="F9",
        title=Words("Too many prefills in one step", "一步里混入过多预填充"),
        symptoms=Words("a huge `--max-num-batched-tokens`, prefill times far above the prompt's own", "`--max-num-batched-tokens` 过大，预填充时间远超提示词自身所需"),
        why=Words("all prompts of a step end together", "同一步内的提示词同时结束"),
        needs=Words("the budget, prompt lengths, prefill times", "预算、提示词长度、预填充时间"),
        remedy=Words("8192 or less for latency", "为延迟设为 8192 或更小"),
        check=Words("per-phase times of one request", "单个请求各阶段耗时"),
        judge=prefills_mixed,
    ),
)
