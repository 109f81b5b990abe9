"""Everybody stands still while one long prompt is computed, as the histograms of scrapes show it (F2 without rows)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from headway.doctor.case import Case
from headway.doctor.facts.metrics import Span, span_of
from headway.doctor.finding import Fix, Found
from headway.doctor.words import Words

_LONG_TOKENS: Final = 1024
_LONGER: Final = 8  # times the median prompt
_LEAST_PROMPTS: Final = 5
_STALL: Final = 0.5  # seconds between two tokens of a request
_WORSE: Final = 10.0  # times the usual gap
_GOAL: Final = 0.5  # seconds that a piece of a long prompt may hold the others up


@dataclass(frozen=True, slots=True)
class _Stall:
    """Of `prompts` in the span `long` have more than `bound` tokens, half of all at most `usual`. Gaps between the tokens of a
    request in seconds: half are at most `gap`, one of a hundred is `stall` or more. `step`: tokens that the largest steps exceed."""

    prompts: int
    long: int
    bound: float
    usual: float
    gap: float
    stall: float
    step: float


def stalled_steps(case: Case) -> Found | None:
    span = span_of(case.context)
    seen = _stall(span) if span is not None and not span.since_start else None
    if span is None or seen is None:
        return None
    rate = seen.step / seen.stall
    piece = max(64, 2 ** math.floor(math.log2(max(rate * _GOAL, 64))))
    budget = max(256, 2 * piece)
    shown = f"prompts: {seen.long} of {seen.prompts} above {seen.bound:g} tokens; gap between tokens: median {seen.gap * 1e3:.0f} ms, p99 {seen.stall:.1f} s"
    return Found(
        cause=Words(
            f"Short requests stand still while a long prompt is computed: {seen.long} of {seen.prompts} prompts have more than {seen.bound:,.0f} tokens, half have at most {seen.usual:,.0f}."
            f" The gap between two tokens is {seen.gap * 1e3:.0f} ms in the middle and {seen.stall:.1f} s at worst (p99), where a step holds more than {seen.step:,.0f} tokens (about {rate:,.0f} tokens/s)."
            " The order within the steps is unfair; capacity is there.",
            f"计算长提示词时短请求停滞：{seen.prompts} 个提示词中有 {seen.long} 个超过 {seen.bound:,.0f} token，一半不超过 {seen.usual:,.0f}。"
            f"token 间隔中位数 {seen.gap * 1e3:.0f} 毫秒，最坏（p99）{seen.stall:.1f} 秒，此时一步超过 {seen.step:,.0f} token（约每秒 {rate:,.0f} token）。是每一步内的分配不公平，容量是够的。",
        ),
        evidence=[case.context.quote(f"metrics.{span.last.index}", shown)],
        fixes=[
            Fix(
                Words(f"bound the share of a long prompt in each step: {piece} of its tokens take about {piece / rate:.1f} s", f"限制长提示词在每一步中的份额：{piece} 个 token 约需 {piece / rate:.1f} 秒"),
                f"--long-prefill-token-threshold {piece}",
            ),
            Fix(Words(f"or shorter steps for everybody: at most {budget} tokens", f"或缩短所有步：最多 {budget} token"), f"--max-num-batched-tokens {budget}"),
            Fix(Words("or send prompts of that length to a server of their own", "或把这种长度的提示词发送到单独的服务器")),
        ],
        verify=Words(
            f"the same load: the p99 of vllm:inter_token_latency_seconds falls from {seen.stall:.1f} s towards {_GOAL:g} s", f"相同负载：vllm:inter_token_latency_seconds 的 p99 从 {seen.stall:.1f} 秒降到 {_GOAL:g} 秒左右"
        ),
        confidence=0.7,
        weight="degraded",
        explains=("F1", "F3", "T10", "T11"),
    )


def _stall(span: Span) -> _Stall | None:
    prompts, usual = span.grown("request_prompt_tokens_count"), span.quantile("request_prompt_tokens", 0.5)
    gap, stall = (span.quantile("inter_token_latency_seconds", share) for share in (0.5, 0.99))
    if not prompts or prompts < _LEAST_PROMPTS or not usual or not gap or not stall or stall < max(_STALL, _WORSE * gap):
        return None
    long, steps = _above(span, "request_prompt_tokens", max(_LONG_TOKENS, _LONGER * usual)), _above(span, "iteration_tokens_total", _LONG_TOKENS)
    if long is None or steps is None or long[0] * 2 > prompts:
        return None
    return _Stall(int(prompts), int(long[0]), long[1], usual, gap, stall, steps[1])


def _above(span: Span, histogram: str, least: float) -> tuple[float, float] | None:
    """(how many observations lie above a bound, that bound): the highest bound of at least `least` that some lie above."""
    counts = span.grown_by("le", f"{histogram}_bucket")
    total = counts.get("+Inf", 0.0)
    found = [(total - count, float(le)) for le, count in counts.items() if le != "+Inf" and float(le) >= least and total - count > 0]
    return max(found, key=lambda pair: pair[1], default=None)
