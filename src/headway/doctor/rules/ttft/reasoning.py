"""A reasoning model thinks before it answers (F14)."""

from __future__ import annotations

from statistics import median
from typing import Final

from headway.doctor.case import Case
from headway.doctor.facts.requests import RequestRow
from headway.doctor.finding import Fix, Found
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

_REASONING: Final = ("first_reasoning_s", "reasoning_s", "ttft_reasoning_s", "first_think_s", "first_any_s", "first_token_s", "first_delta_s")
_CONTENT: Final = ("first_content_s", "content_s", "ttft_content_s", "first_answer_s")
_TOKENS: Final = ("reasoning_tok", "reasoning_tokens", "think_tok", "thinking_tokens")


def thinks_first(case: Case) -> Found | None:
    rows = [row for row in case.requests if row.seconds(*_CONTENT) is not None and (row.seconds(*_REASONING) is not None or row.number(*_TOKENS))]
    if not rows:
        return None
    content, first = median(row.seconds(*_CONTENT) or 0.0 for row in rows), _first(rows)
    tokens = [value for row in rows if (value := row.number(*_TOKENS))]
    if content < 1.0 or not tokens or (first is not None and (content < 3 * first or first > 0.5 * content)):
        return None
    thought = median(tokens)
    gap = content - (first or 0.0)
    speed = thought / gap if gap > 0 else 0.0
    early = f"the first reasoning token comes after {first:.2f} s" if first is not None else "reasoning tokens come first"
    early_zh = f"首个思考 token 在 {first:.2f} 秒时就到了" if first is not None else "思考 token 先到"
    budget = max(64, int(speed * 2 // 64 * 64))
    return Found(
        cause=Words(
            f"The model thinks before it answers: {early}, the first content after {content:.1f} s. In between are {thought:,.0f} reasoning tokens at {speed:.0f} tokens/s ({thought:,.0f} / {speed:.0f} = {gap:.1f} s). The server is not slow.",
            f"模型先思考再回答：{early_zh}，首个正文在 {content:.1f} 秒。中间是 {thought:,.0f} 个思考 token，速度 {speed:.0f} tokens/s（{thought:,.0f} / {speed:.0f} = {gap:.1f} 秒）。服务器并不慢。",
        ),
        evidence=[rows[0].quote, *([rows[-1].quote] if len(rows) > 1 else [])],
        fixes=[
            Fix(Words("switch thinking off where it is not needed", "在不需要的场合关闭思考"), '"chat_template_kwargs": {"enable_thinking": false}'),
            Fix(Words("show or measure the reasoning as it streams (delta.reasoning_content) instead of waiting for delta.content", "流式展示或测量思考内容（delta.reasoning_content），不要只等 delta.content")),
            Fix(Words(f"or limit it: a thinking budget of {budget} tokens bounds the wait to about 2 s", f"或限制它：思考预算设为 {budget} 个 token，等待约为 2 秒"), f'"thinking_token_budget": {budget}'),
        ],
        verify=Words(
            "measure the time to the first token of any kind (reasoning_content or content)" + (f": about {first:.2f} s" if first is not None else ": well below the time to the first content"),
            "测量任意类型的首个 token（reasoning_content 或 content）" + (f"：约 {first:.2f} 秒" if first is not None else "：远小于首个正文的时间"),
        ),
        confidence=0.93 if first is not None else 0.75,
        weight="degraded",
        explains=("F1", "F3", "F5", "F6", "F13", "F15", "T4"),
    )


def _first(rows: list[RequestRow]) -> float | None:
    values = [value for row in rows if (value := row.seconds(*_REASONING)) is not None]
    return median(values) if values else None


RULES: Final = (
    Rule(
        id="F14",
        title=Words("The model reasons before it answers", "模型先思考再回答"),
        symptoms=Words("first content late, first reasoning token early", "首个正文晚，首个思考 token 早"),
        why=Words("gap = reasoning tokens / speed", "间隔 = 思考 token 数 / 速度"),
        needs=Words("first reasoning and first content times, reasoning tokens", "首个思考与首个正文的时间、思考 token 数"),
        remedy=Words("show or measure `reasoning_content`, limit or switch thinking (`enable_thinking: false`)", "展示或测量 `reasoning_content`，限制或关闭思考（`enable_thinking: false`）"),
        check=Words("time to the first token of any kind", "任意类型首个 token 的时间"),
        judge=thinks_first,
    ),
)
