"""Structured output that slows its requests down at every token (T8)."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.sight import sight
from headway.doctor.facts.requests import GAP_SERVER, OUTPUT_TOKENS, RequestRow, is_guided
from headway.doctor.finding import Abstention, Fix, Found
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

COMPILING_FSM: Final = sight("Compiling FSM index", "Compiling regex to FSM", "Compiling grammar took", "Grammar compilation took")
FALLBACK: Final = sight(
    "Falling back to use outlines", "Falling back to outlines", "xgrammar does not support", "xgrammar module cannot be imported", "not supported by xgrammar"
)

_SLOWER: Final = 1.4


def slow_per_token(case: Case) -> Found | Abstention | None:
    guided = [row for row in case.requests if is_guided(row)]
    plain = [row for row in case.requests if is_guided(row) is False]
    slow, fast = _gap(guided), _gap(plain)
    fallback = case.log.first(FALLBACK)
    if slow is None or fast is None or not fast:
        compiling = case.log.first(COMPILING_FSM)
        seen = fallback or compiling
        if seen is None or not case.requests:
            return None
        return Abstention(
            Words(
                "whether structured output slows its requests: send the same prompt with and without the schema and compare the time per token",
                "结构化输出是否拖慢请求：用同一提示词分别带和不带 schema 发送，比较每 token 耗时",
            ),
            [seen.quote()],
        )
    if slow < fast * _SLOWER:
        return None
    backend = case.launch.value("guided_decoding_backend") or case.launch.value("structured_outputs_config")
    backend_text = f" (backend {backend[:60]})" if backend else ""
    backend_zh = f"（后端 {backend[:60]}）" if backend else ""
    why = " The log says that the fast backend does not handle this schema and a slower one is used." if fallback else ""
    why_zh = "日志表明快速后端不支持该 schema，改用了较慢的后端。" if fallback else ""
    return Found(
        cause=Words(
            f"Only requests with structured output are slow: {slow * 1e3:.0f} ms per token with a schema against {fast * 1e3:.0f} ms without"
            f" ({len(guided)} and {len(plain)} requests, {slow / fast:.1f} x){backend_text}. The mask of allowed tokens is computed on the host at every token.{why}",
            f"只有结构化输出的请求慢：带 schema 时每 token {slow * 1e3:.0f} ms，不带时 {fast * 1e3:.0f} ms"
            f"（分别 {len(guided)} 和 {len(plain)} 个请求，{slow / fast:.1f} 倍）{backend_zh}。每个 token 都要在主机上计算允许的 token 掩码。{why_zh}",
        ),
        evidence=[guided[0].quote, plain[0].quote, *([fallback.quote()] if fallback else [])],
        fixes=[
            Fix(Words("use the backend that computes masks in native code", "使用以原生代码计算掩码的后端"), _backend_flag(case)),
            Fix(
                Words(
                    "simplify the schema: no huge enums, no nested optional objects, no unbounded patterns; send the identical schema text every time so that the compiled grammar is reused",
                    "简化 schema：避免巨大的枚举、嵌套的可选对象和无界正则；每次发送完全相同的 schema 文本，以便复用已编译的语法",
                )
            ),
        ],
        verify=Words(
            f"the same prompt with and without the schema: time per token within 10 % of {fast * 1e3:.0f} ms", f"同一提示词带与不带 schema：每 token 耗时与 {fast * 1e3:.0f} ms 相差 10% 以内"
        ),
        confidence=0.85 if min(len(guided), len(plain)) >= 3 else 0.65,
        weight="degraded",
        explains=("F7",),
    )


def _backend_flag(case: Case) -> str:
    version = case.launch.version.split(".")
    old = len(version) > 1 and version[0] == "0" and version[1].isdigit() and int(version[1]) < 11
    if case.launch.program == "sglang":
        return "--grammar-backend xgrammar"
    return "--guided-decoding-backend xgrammar" if old else """--structured-outputs-config '{"backend": "xgrammar"}'"""


def _gap(rows: Sequence[RequestRow]) -> float | None:
    """Median seconds per token."""
    gaps = [gap for row in rows if (gap := _seconds_per_token(row)) is not None]
    return median(gaps) if gaps else None


def _seconds_per_token(row: RequestRow) -> float | None:
    gap = row.seconds(*GAP_SERVER, "itl_cli_s")
    if gap is not None:
        return gap
    if rate := row.number("tok_s", "tokens_per_s", "tok_per_s"):
        return 1 / rate
    total, tokens = row.seconds("total_s", "latency_s", "e2e_s"), row.number(*OUTPUT_TOKENS)
    return total / tokens if total and tokens else None


RULES: Final = (
    Rule(
        id="T8",
        title=Words("Structured output slows its requests", "结构化输出拖慢了请求"),
        symptoms=Words("only guided requests are slow", "只有带约束的请求慢"),
        why=Words("the mask of allowed tokens is computed per token, or a slow backend is used", "每个 token 都要计算允许的掩码，或使用了慢的后端"),
        needs=Words("timings of the same prompt with and without the schema", "同一提示词带与不带 schema 的耗时"),
        remedy=Words("identical schema texts (cached), another backend, a simpler schema", "使用完全相同的 schema 文本（可缓存）、更换后端、简化 schema"),
        check=Words("the same prompt without the schema", "用不带 schema 的同一提示词"),
        judge=slow_per_token,
        sees=(COMPILING_FSM, FALLBACK),
    ),
)
