"""The context limit is the model's default and far above what requests need (O12)."""

from __future__ import annotations

import math
from typing import Final

from headway.doctor.case import Case
from headway.doctor.facts.memory import CONCURRENCY
from headway.doctor.facts.metrics import span_of
from headway.doctor.facts.requests import RequestRow
from headway.doctor.finding import Fix, Found, Quote
from headway.doctor.rules.memory.flag_names import flag
from headway.doctor.rules.memory.sizes import BLOCK
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

_LONG: Final = 131072
_CROWDED: Final = 2.0
_STEP: Final = 1024
_LENGTHS: Final = ("total_tokens", "tokens", "length")
_ENOUGH_REQUESTS: Final = 3


def context_far_above_need(case: Case) -> Found | None:
    """Needed: the 99.9th percentile of prompt + output, rounded up to 1024."""
    hit = case.log.last(CONCURRENCY)
    if hit is None or not case.startup.reached("cache made"):
        return None
    length, times = int(hit.number("length")), hit.number("times")
    if length < _LONG or times >= _CROWDED:
        return None
    measured = _need(case)
    waiting = max((sample.waiting or 0 for sample in case.load), default=0)
    chosen = case.launch.flags.get("max_model_len") is not None
    if measured is not None:
        need, _, counted = measured
        limit = min(length, -(-int(need * 1.05) // _STEP) * _STEP)
        if limit > length // 2:
            return None
        confidence = 0.9
        seen = f"; {counted} needed at most {need} tokens"
        seen_zh = f"；{counted} 个请求实测最多需要 {need} 个 token"
    else:
        limit = max(BLOCK, 32768 if length > 32768 else length)
        confidence = 0.4 if chosen else 0.75 if waiting > 0 else 0.6
        seen, seen_zh = "; the lengths of the requests are not known", "；请求长度未知"
    gain = times * length / limit
    return Found(
        cause=Words(
            f"The context limit is {length} tokens{'' if chosen else ', the default of the model'}, and the cache holds only {times:.2f} sequences of that length{seen}. The limit, not the card, makes the"
            f" start tight; at {limit} tokens {gain:.1f} sequences fit.",
            f"上下文上限为 {length} token{'' if chosen else '（模型默认值）'}，缓存只能容纳 {times:.2f} 个这样长的序列{seen_zh}。紧张的是这个上限而不是显卡；上限为 {limit} 时可容纳 {gain:.1f} 个。",
        ),
        evidence=[hit.quote(), *(measured[1] if measured is not None else ())],
        fixes=[
            Fix(
                Words(f"limit the context to the need: {limit} tokens", f"按需要限制上下文：{limit} token")
                if measured is not None
                else Words(
                    f"limit the context to the need (99.9 % of the requests, rounded up); {limit} is enough for most chats",
                    f"按需要限制上下文（99.9% 请求长度向上取整）；多数对话 {limit} 足够",
                ),
                flag(case, "length", limit),
            )
        ],
        verify=Words(
            f"start again: `Maximum concurrency for {limit:,} tokens per request` is about {gain:.1f}x",
            f"重新启动：`Maximum concurrency for {limit:,} tokens per request` 约为 {gain:.1f}x",
        ),
        confidence=confidence,
        weight="degraded" if confidence > 0.5 else "remark",
    )


def _need(case: Case) -> tuple[int, tuple[Quote, ...], str] | None:
    """The 99.9th percentile of tokens per request, prompt and output: of listed requests, else of the server's histograms."""
    needs = sorted(total for row in case.requests if (total := _tokens(row)) is not None)
    if len(needs) >= _ENOUGH_REQUESTS:
        return needs[math.ceil(0.999 * len(needs)) - 1], (case.requests[0].quote,), f"{len(needs)} requests"
    span = span_of(case.context)
    prompt = span.quantile("request_prompt_tokens", 0.999) if span is not None else None
    output = span.quantile("request_generation_tokens", 0.999) if span is not None else None
    if span is None or prompt is None:
        return None
    return math.ceil(prompt + (output or 0.0)), (span.quote,), "99.9 % of the requests"


def _tokens(row: RequestRow) -> int | None:
    whole = row.number(*_LENGTHS)
    prompt, output = (
        row.number("prompt_tok", "prompt_tokens", "input_tokens"),
        row.number("out_tok", "output_tokens", "completion_tokens", "max_tokens"),
    )
    total = whole if whole is not None else None if prompt is None else prompt + (output or 0)
    return int(total) if total else None


RULES: Final = (
    Rule(
        id="O12",
        title=Words("The context default is far above the need", "默认上下文远超需要"),
        symptoms=Words("a context limit of 131072 or more and a concurrency below 2x", "上下文上限 131072 或以上，并发低于 2x"),
        why=Words("one sequence of the default length takes most of the cache", "一个默认长度的序列就占去大部分缓存"),
        needs=Words("a histogram of request lengths", "请求长度分布"),
        remedy=Words("the 99.9th percentile of the need, rounded up", "按需要的 99.9 百分位向上取整"),
        check=Words("the concurrency line", "并发行"),
        judge=context_far_above_need,
    ),
)
