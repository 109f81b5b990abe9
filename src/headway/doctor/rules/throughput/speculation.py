"""Speculative decoding that costs more than it saves (T9)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.sight import sight
from headway.doctor.facts.load import shape_of
from headway.doctor.facts.load_lines import SGLANG_DECODE
from headway.doctor.facts.metrics import span_of
from headway.doctor.finding import Fix, Found, Quote
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

ACCEPTED: Final = sight(
    "Mean acceptance length: ",
    pattern=r"^(?:(?=.*?Draft acceptance rate: (?P<rate>\d+(?:\.\d+)?)(?P<percent>%)?))?.*?Mean acceptance length: (?P<length>\d+(?:\.\d+)?)"
    r"(?:.*?Per-position acceptance rate: \[?(?P<positions>\d+(?:\.\d+)?(?:, \d+(?:\.\d+)?)*))?",
    series=True,
)
OLD: Final = sight(
    "Speculative metrics: Draft acceptance rate",
    pattern=r"Draft acceptance rate: (?P<rate>\d+(?:\.\d+)?), System efficiency: (?P<efficiency>\d+(?:\.\d+)?), Number of speculative tokens: (?P<k>\d+)",
    series=True,
)
LLAMA: Final = sight("draft acceptance rate = ", pattern=r"draft acceptance rate = (?P<rate>\d+(?:\.\d+)?) \( *(?P<accepted>\d+) accepted / *(?P<drafted>\d+) generated\)")

_BREAK_EVEN: Final = 1.05
_HOST_COST: Final = 0.02  # of a target step, for proposing and checking, whatever the draft
_FREE_DRAFTS: Final = ("ngram", "[ngram]", "suffix", "prompt_lookup")
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?) ?([BM])\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Drafting:
    """`length`: tokens per step of the large model, 1 = nothing accepted. `k`: drafted per step. `rate`: share of drafted
    tokens that were accepted. `positions`: that share by position, () when unknown."""

    length: float
    k: int | None
    rate: float | None
    positions: tuple[float, ...]
    quotes: tuple[Quote, ...]


def speculation_loses(case: Case) -> Found | None:
    seen = _drafting(case)
    if seen is None:
        return None
    cost = _draft_cost(case)
    k = seen.k or 1
    gain = max(1.0, seen.length) / (1 + k * cost)
    shape = shape_of(case.load)
    if gain >= _BREAK_EVEN and not (seen.rate is not None and seen.rate < 0.10):
        return None
    rate = f", {seen.rate:.1%} of drafted tokens are accepted" if seen.rate is not None else ""
    rate_zh = f"，草稿 token 的接受率为 {seen.rate:.1%}" if seen.rate is not None else ""
    batch = f" At {shape.running:g} running sequences the drafts also take room from real tokens." if shape and shape.running >= 16 else ""
    batch_zh = f"在 {shape.running:g} 个序列同时运行时，草稿还会挤占真正的 token。" if shape and shape.running >= 16 else ""
    return Found(
        cause=Words(
            f"Speculative decoding costs more than it saves: mean acceptance length {seen.length:.2f} with {k} drafted tokens per step{rate}."
            f" Gain = {seen.length:.2f} / (1 + {k} x {cost:.2f}) = {gain:.2f}, below 1.05.{batch} Answers are not affected, only speed.",
            f"投机解码（speculative decoding）得不偿失：每步草拟 {k} 个 token，平均接受长度 {seen.length:.2f}{rate_zh}。"
            f"收益 = {seen.length:.2f} / (1 + {k} x {cost:.2f}) = {gain:.2f}，低于 1.05。{batch_zh}只影响速度，不影响答案。",
        ),
        evidence=[*seen.quotes, *([shape.middle.quote] if shape else [])],
        fixes=_fixes(case, seen, cost),
        verify=Words(
            f"the same load with and without speculation: tokens/s without it is at least {1 / gain:.2f} x the present"
            + (f" {shape.generation_rate:.0f}" if shape and shape.generation_rate else ""),
            f"相同负载下分别开启和关闭投机解码：关闭后的 tokens/s 至少是现在{f' {shape.generation_rate:.0f} ' if shape and shape.generation_rate else ''}的 {1 / gain:.2f} 倍",
        ),
        confidence=0.92 if gain < 1 else 0.75,
        weight="degraded",
    )


def _fixes(case: Case, seen: Drafting, cost: float) -> list[Fix]:
    config = case.launch.fact("speculative_config") is not None or case.launch.fact("speculative_model") is None
    flag = "--speculative-config" if config else "--speculative-model"
    fixes = [Fix(Words(f"switch speculative decoding off: remove {flag} from the command", f"关闭投机解码：从命令中去掉 {flag}"))]
    best = _best_count(seen, cost)
    if best is not None and seen.k is not None and best * 2 <= seen.k:
        fixes.append(
            Fix(
                Words(f"or draft fewer tokens: {seen.k} -> {best}, where the acceptance by position still pays", f"或减少草稿 token 数：{seen.k} -> {best}，按各位置接受率此时仍有收益"),
                f'num_speculative_tokens: {best}',
            )
        )
    fixes.append(
        Fix(
            Words(
                "or use a different draft: one trained for this model (EAGLE, MTP), or method ngram where answers repeat the prompt",
                "或更换草稿来源：为该模型训练的草稿（EAGLE、MTP），或在答案会重复提示词时使用 ngram",
            )
        )
    )
    return fixes


def _best_count(seen: Drafting, cost: float) -> int | None:
    """The number of drafted tokens with the best gain, None when none pays."""
    gains = [((1 + sum(seen.positions[:count])) / (1 + count * cost), count) for count in range(1, len(seen.positions) + 1)]
    best = max(gains, default=(0.0, 0))
    return best[1] if best[0] >= _BREAK_EVEN else None


def _draft_cost(case: Case) -> float:
    """Cost of drafting one token in steps of the large model: ratio of parameters by name plus the host's share; 0.05 of a
    head on the model itself (EAGLE, MTP) and of an unknown draft 0.10."""
    given = case.launch.value("speculative_config") + case.launch.value("speculative_model")
    if any(word in given for word in _FREE_DRAFTS):
        return _HOST_COST
    draft, target = _billions(given), _billions(case.launch.model)
    if draft and target and draft < target:
        return draft / target + _HOST_COST
    if re.search(r"(?i)eagle|mtp|medusa|mlp_speculator", given):
        return 0.05
    return 0.10


def _billions(text: str) -> float | None:
    found = _SIZE.search(text.replace("-", " ").replace("_", " "))
    return float(found[1]) * (1.0 if found[2].upper() == "B" else 1e-3) if found else None


def _drafting(case: Case) -> Drafting | None:
    asked = _asked_count(case)
    lines = list(case.log.hits(ACCEPTED))
    if lines:
        lines = lines[len(lines) // 4 :]  # the first ones hold the warm-up
        lengths = sorted(hit.number("length") for hit in lines)
        last = lines[-1]
        rates = [hit.number("rate") / (100 if hit["percent"] else 1) for hit in lines if hit["rate"]]
        positions = tuple(float(value) for value in last["positions"].split(", ")) if last["positions"] else ()
        rate = sorted(rates)[len(rates) // 2] if rates else None
        return Drafting(lengths[len(lengths) // 2], asked or len(positions) or None, rate, positions, (lines[0].quote(), last.quote())[: len(lines)])
    if old := case.log.last(OLD):
        k, rate = int(old.number("k")), old.number("rate")
        # of k drafted tokens rate * k are accepted at best in front: efficiency counts what was emitted of k + 1
        return Drafting(max(1.0, old.number("efficiency") * (k + 1)), k, rate, (), (old.quote(),))
    if llama := case.log.last(LLAMA):
        rate = llama.number("rate")
        k = asked or 16
        return Drafting(1 + rate * k, k, rate, (), (llama.quote(),))
    sglang = [hit for hit in case.log.hits(SGLANG_DECODE) if hit["accepted"]]
    if sglang:
        return Drafting(sglang[-1].number("accepted"), asked, None, (), (sglang[-1].quote(),))
    return _from_metrics(case, asked)


def _from_metrics(case: Case, asked: int | None) -> Drafting | None:
    span = span_of(case.context)
    if span is None:
        return None
    drafts, drafted, accepted = (span.grown(f"spec_decode_num_{name}") for name in ("drafts", "draft_tokens", "accepted_tokens"))
    if not drafted or accepted is None:
        return None
    k = round(drafted / drafts) if drafts else asked
    length = 1 + accepted / drafts if drafts else 1 + accepted / drafted * (asked or 1)
    by_position = span.grown_by("position", "spec_decode_num_accepted_tokens_per_pos")
    positions = tuple(by_position[name] / drafts for name in sorted(by_position, key=int)) if drafts and all(name.isdigit() for name in by_position) else ()
    quote = case.context.quote(f"metrics.{span.last.index}", f"spec_decode: drafts {drafts or 0:g}, draft_tokens {drafted:g}, accepted_tokens {accepted:g}")
    return Drafting(length, k, accepted / drafted, positions, (quote,))


def _asked_count(case: Case) -> int | None:
    for text in (case.launch.value("speculative_config"), case.launch.value("num_speculative_tokens"), case.launch.value("speculative_num_draft_tokens"), case.launch.command):
        found = re.search(r"num_speculative_tokens\W{1,4}(\d+)|^(\d+)$|--draft(?:-max|-n)? (\d+)|num[-_]speculative[-_]tokens[= ](\d+)", text)
        if found:
            return int(next(group for group in found.groups() if group))
    return None


RULES: Final = (
    Rule(
        id="T9",
        title=Words("Speculative decoding loses", "投机解码得不偿失"),
        symptoms=Words("`Mean acceptance length` near 1, an acceptance of a few percent, or a batch beyond the knee", "`Mean acceptance length` 接近 1、接受率只有百分之几，或批次已过拐点"),
        why=Words("drafting and checking cost more than the accepted tokens save", "草拟和校验的开销超过被接受 token 省下的时间"),
        needs=Words("acceptance length or rate, drafted tokens per step, size of the draft", "接受长度或接受率、每步草稿 token 数、草稿模型大小"),
        remedy=Words("switch it off, fewer draft tokens, or a better draft", "关闭、减少草稿 token，或使用更好的草稿模型"),
        check=Words("tokens/s with and without at the same load", "相同负载下开启与关闭时的 tokens/s"),
        judge=speculation_loses,
        sees=(ACCEPTED, OLD, LLAMA),
        explains=("T4",),
    ),
)
